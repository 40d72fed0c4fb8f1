// SPDX-License-Identifier: Apache-2.0
/// One __global__ function a pair of gradient and parameter type, around the update rule's own per-element function.
#pragma once

#if !defined(__CUDACC__)
#error "update_kernels.cuh needs nvcc; host code includes <spillway/optimizer/any_updater.hpp>, made in a .cu file"
#endif

#include <spillway/core/f32.hpp>
#include <spillway/cuda/cuda_error.hpp>
#include <spillway/optimizer/chunk_updater_concept.hpp>
#include <spillway/optimizer/stored.hpp>

#include <cuda_runtime.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <tuple>
#include <type_traits>
#include <utility>

namespace spillway::inline v0::cuda::detail {

/// Where one run lies, by value in the launch.
template <class Storage, class G, class P>
struct run_on_device {
  std::byte* arrays[Storage::kernel::arrays.size()];
  std::uint64_t offset;
  std::uint64_t count;
  G const* gradient;
  P* parameter;
};

template <class Storage, std::size_t I>
using codec_of = std::tuple_element_t<I, typename Storage::codecs>;
template <class Storage>
using every_array = std::make_index_sequence<Storage::kernel::arrays.size()>;

template <class Storage, class G, class P, std::size_t... I>
SPILLWAY_HOST_DEVICE void update_one(run_on_device<Storage, G, P> const& run,
                                     typename Storage::kernel::constants const& constants, f32 scale, std::uint64_t e,
                                     std::index_sequence<I...>) {
  std::uint64_t const at = run.offset + e;
  f32 narrow{};
  if constexpr (Storage::needs_parameter) narrow = f32::load(run.parameter + e);
  f32 const gradient = f32::load(run.gradient + e) * scale;
  f32 state[sizeof...(I)] = {codec_of<Storage, I>::template load<f32>(run.arrays[I], at, narrow)...};
  Storage::kernel::update(constants, gradient, state);
  (codec_of<Storage, I>::template store<f32>(run.arrays[I], at, state[I]), ...);
  state[0].template store<Storage::rule>(run.parameter + e);
}

template <class Storage, class G, class P, std::size_t... I>
SPILLWAY_HOST_DEVICE void initialise_one(run_on_device<Storage, G, P> const& run, std::uint64_t e,
                                         std::index_sequence<I...>) {
  f32 const master = f32::load(run.gradient + e);
  (codec_of<Storage, I>::template store<f32>(run.arrays[I], run.offset + e, I == 0 ? master : f32{0.0F}), ...);
  master.template store<Storage::rule>(run.parameter + e);
}

// Hidden: two shared objects that use the same instance must not share its host stub.
template <class Storage, class G, class P>
__global__ __attribute__((visibility("hidden"))) void update_run(run_on_device<Storage, G, P> run,
                                                                 typename Storage::kernel::constants constants,
                                                                 float scale) {
  std::uint64_t const stride = static_cast<std::uint64_t>(gridDim.x) * blockDim.x;
  for (std::uint64_t e = static_cast<std::uint64_t>(blockIdx.x) * blockDim.x + threadIdx.x; e < run.count;
       e += stride) {
    update_one(run, constants, f32{scale}, e, every_array<Storage>{});
  }
}

template <class Storage, class P>
__global__ __attribute__((visibility("hidden"))) void initialise_run(run_on_device<Storage, float, P> run) {
  std::uint64_t const stride = static_cast<std::uint64_t>(gridDim.x) * blockDim.x;
  for (std::uint64_t e = static_cast<std::uint64_t>(blockIdx.x) * blockDim.x + threadIdx.x; e < run.count;
       e += stride) {
    initialise_one(run, e, every_array<Storage>{});
  }
}

template <class Storage, class G, class P>
[[nodiscard]] run_on_device<Storage, G, P> placed(chunk_view const& chunk, run_view const& run, G const* gradient) {
  run_on_device<Storage, G, P> out{.arrays = {},
                                   .offset = run.offset,
                                   .count = run.count,
                                   .gradient = gradient,
                                   .parameter = reinterpret_cast<P*>(run.parameter)};
  std::copy_n(chunk.arrays.begin(), Storage::kernel::arrays.size(), out.arrays);
  return out;
}

/// The launch itself returns what is wrong with it: cudaGetLastError() afterwards would also return what others left there.
template <class... Parameters, class... Arguments>
void launch(char const* where, void (*kernel)(Parameters...), std::uint64_t count, cudaStream_t stream,
            Arguments&&... arguments) {
  constexpr unsigned threads = 256;
  cudaLaunchConfig_t configuration{};
  configuration.gridDim =
      dim3(static_cast<unsigned>(std::min<std::uint64_t>((count + threads - 1) / threads, 1U << 20U)));
  configuration.blockDim = dim3(threads);
  configuration.stream = stream;
  check(cudaLaunchKernelEx(&configuration, kernel, std::forward<Arguments>(arguments)...), where);
}

template <class Storage>
void launch_update(chunk_view const& chunk, run_view const& run, typename Storage::kernel::constants const& constants,
                   float scale, cudaStream_t stream) {
  auto const with = [&]<class G, class P>(G const* gradient, P*) {
    launch("cuda::updater update: cudaLaunchKernelEx", &update_run<Storage, G, P>, run.count, stream,
           placed<Storage, G, P>(chunk, run, gradient), constants, scale);
  };
  auto const with_gradient = [&]<class G>(G const* gradient) {
    run.parameter_type == dtype::bfloat16 ? with(gradient, static_cast<bf16*>(nullptr))
                                          : with(gradient, static_cast<float*>(nullptr));
  };
  run.gradient_type == dtype::bfloat16 ? with_gradient(reinterpret_cast<bf16 const*>(run.gradient))
                                       : with_gradient(reinterpret_cast<float const*>(run.gradient));
}

template <class Storage>
void launch_initialise(chunk_view const& chunk, run_view const& run, float const* master, cudaStream_t stream) {
  auto const with = [&]<class P>(P*) {
    launch("cuda::updater initialise: cudaLaunchKernelEx", &initialise_run<Storage, P>, run.count, stream,
           placed<Storage, float, P>(chunk, run, master));
  };
  run.parameter_type == dtype::bfloat16 ? with(static_cast<bf16*>(nullptr)) : with(static_cast<float*>(nullptr));
}

}  // namespace spillway::inline v0::cuda::detail
