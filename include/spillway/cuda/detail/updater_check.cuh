// SPDX-License-Identifier: Apache-2.0
/// Proof at run time that the GPU computes the bits that the host does.
#pragma once

#if !defined(__CUDACC__)
#error "updater_check.cuh needs nvcc; host code includes <spillway/optimizer/any_updater.hpp>, made in a .cu file"
#endif

#include <spillway/core/error.hpp>
#include <spillway/cuda/cuda_error.hpp>
#include <spillway/cuda/detail/update_kernels.cuh>
#include <spillway/optimizer/kernel_check.hpp>

#include <cuda_runtime.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace spillway::inline v0::cuda::detail {

/// Bytes in the memory of the current GPU, and a stream for them.
class scratch {
 public:
  explicit scratch(std::size_t n) {
    check(cudaMalloc(&data_, n), "cuda::updater check: cudaMalloc");
    if (auto const result = cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking); result != cudaSuccess) {
      static_cast<void>(cudaFree(data_));
      check(result, "cuda::updater check: cudaStreamCreateWithFlags");
    }
  }
  scratch(scratch const&) = delete;
  scratch& operator=(scratch const&) = delete;
  ~scratch() {
    static_cast<void>(cudaStreamDestroy(stream_));
    static_cast<void>(cudaFree(data_));
  }
  [[nodiscard]] std::byte* data() const noexcept { return static_cast<std::byte*>(data_); }
  [[nodiscard]] cudaStream_t stream() const noexcept { return stream_; }
  void copy(void* to, void const* from, std::size_t n) const {
    check(cudaMemcpyAsync(to, from, n, cudaMemcpyDefault, stream_), "cuda::updater check: cudaMemcpyAsync");
    check(cudaStreamSynchronize(stream_), "cuda::updater check: cudaStreamSynchronize");
  }

 private:
  void* data_ = nullptr;
  cudaStream_t stream_ = nullptr;
};

/// One block of elements with all that an update touches, in one piece of memory: an input (master or gradient), the parameter,
/// the arrays. Gradient and parameter are of type T.
template <class Storage, class T>
struct golden_chunk {
  static constexpr std::size_t input_bytes = block_elements * sizeof(float);
  static constexpr std::uint64_t count = 1000;  // what follows is padding, which nobody may write

  [[nodiscard]] static std::size_t size() {
    std::size_t n = 2 * input_bytes;
    for (auto const& array : Storage::arrays()) n += array.bytes_per_block;
    return n;
  }
  explicit golden_chunk(std::byte* memory) {
    run.count = count;
    run.gradient_type = dtype_of<T>;
    run.parameter_type = dtype_of<T>;
    run.gradient = memory;
    run.parameter = memory + input_bytes;
    std::byte* next = memory + 2 * input_bytes;
    std::size_t a = 0;
    for (auto const& array : Storage::arrays()) {
      arrays[a++] = next;
      next += array.bytes_per_block;
    }
  }
  [[nodiscard]] chunk_view chunk() const { return {arrays, {&run, 1}}; }

  std::array<std::byte*, Storage::kernel::arrays.size()> arrays{};
  run_view run{};
};

/// Usual values, denormals, zeros, values near overflow; with `nan`, one NaN.
inline void golden_inputs(std::uint32_t& random, bool nan, std::vector<float>& to) {
  for (std::size_t i = 0; i < to.size(); ++i) {
    random = random * 1664525U + 1013904223U;
    std::uint32_t bits = (random & 0x83ffffffU) | 0x3c000000U;
    if (i % 16 == 13) bits = random & 0x807fffffU;
    if (i % 16 == 14) bits = (random & 0x80ffffffU) | 0x7e000000U;
    if (i % 16 == 15) bits = 0;
    if (nan && i == 5) bits = 0xffc12345U;
    to[i] = __builtin_bit_cast(float, bits);
  }
}

/// Initialises and takes three steps on both sides; whether all bytes are the same then.
template <class Storage, class T>
[[nodiscard]] bool same_bits_as_host(typename Storage::kernel const& kernel) {
  using golden = golden_chunk<Storage, T>;
  std::vector<std::byte> host(golden::size()), back(golden::size());
  scratch const gpu{golden::size()};
  golden here{host.data()}, there{gpu.data()};
  std::uint32_t random = 12345;
  std::vector<float> values(golden::count);

  golden_inputs(random, false, values);
  auto* const masters = reinterpret_cast<float*>(host.data());
  std::copy(values.begin(), values.end(), masters);
  gpu.copy(gpu.data(), host.data(), host.size());
  launch_initialise<Storage>(there.chunk(), there.run, reinterpret_cast<float const*>(gpu.data()), gpu.stream());
  auto const started = placed<Storage, float, T>(here.chunk(), here.run, masters);
  for (std::uint64_t e = 0; e < golden::count; ++e) initialise_one(started, e, every_array<Storage>{});

  for (std::uint64_t step = 1; step <= 3; ++step) {
    golden_inputs(random, step == 3, values);
    auto* const gradient = reinterpret_cast<T*>(host.data());
    for (std::uint64_t e = 0; e < golden::count; ++e)
      f32{values[e]}.template store<rounding::nearest_even>(gradient + e);
    gpu.copy(gpu.data(), host.data(), golden::input_bytes);
    auto const constants = kernel.prepare({.number = step * step, .learning_rate_factor = 0.75});
    launch_update<Storage>(there.chunk(), there.run, constants, 0.75F, gpu.stream());
    auto const stepped = placed<Storage, T, T>(here.chunk(), here.run, static_cast<T const*>(gradient));
    for (std::uint64_t e = 0; e < golden::count; ++e)
      update_one(stepped, constants, f32{0.75F}, e, every_array<Storage>{});
  }
  gpu.copy(back.data(), gpu.data(), back.size());
  return back == host;
}

/// Errors  numerics_altered when this build or the GPU computes other bits than the contract promises; the runtime's, by name.
template <class Storage>
void check_updater(typename Storage::kernel const& kernel) {
  using rule = typename Storage::kernel;
  auto const refuse = [](char const* why) {
    throw error{errc::numerics_altered, {.where = "cuda::updater " + std::string(rule::name), .detail = why}};
  };
  float_environment const exact;
  // One element wide only: nvcc refuses a host-device function on `lanes`, and this file never updates with them.
  std::uint64_t const golden = ::spillway::detail::golden_fingerprint<rule>;
  if (golden != 0 && golden != kernel_fingerprint<f32, rule>()) {
    refuse("host code of this .cu file misses the golden fingerprint; look for flags that change floating point");
  }
  if (!same_bits_as_host<Storage, float>(kernel) || !same_bits_as_host<Storage, bf16>(kernel)) {
    refuse("the GPU leaves other bits than the host after three steps on golden inputs");
  }
}

}  // namespace spillway::inline v0::cuda::detail
