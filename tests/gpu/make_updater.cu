// SPDX-License-Identifier: Apache-2.0
#include <spillway/cuda/updater.cuh>

#include "gpu/make_updater.hpp"

spillway::any_updater make_cuda_updater(spillway::adamw_kernel kernel) {
  return spillway::any_updater{spillway::cuda::updater<spillway::adamw_kernel>{kernel}};
}

spillway::any_updater make_cuda_updater(std::vector<spillway::adamw_kernel> by_group) {
  return spillway::any_updater{spillway::cuda::updater<spillway::adamw_kernel>{std::move(by_group)}};
}

namespace {
using storage = spillway::detail::storage_of<spillway::adamw_kernel>;
namespace d = spillway::cuda::detail;

template <class G, class P>
void update_run(spillway::adamw_kernel const& kernel, spillway::chunk_view const& chunk, spillway::run_view const& run,
                spillway::update_scalars const& scalars) {
  auto const here = d::placed<storage, G, P>(chunk, run, reinterpret_cast<G const*>(run.gradient));
  auto const constants = kernel.prepare({run.step, scalars.learning_rate_factor});
  for (std::uint64_t e = 0; e < run.count; ++e) {
    d::update_one(here, constants, spillway::f32{scalars.gradient_scale}, e, d::every_array<storage>{});
  }
}
template <class P>
void initialise_run(spillway::chunk_view const& chunk, spillway::run_view const& run, float const* master) {
  auto const here = d::placed<storage, float, P>(chunk, run, master);
  for (std::uint64_t e = 0; e < run.count; ++e) d::initialise_one(here, e, d::every_array<storage>{});
}
}  // namespace

void initialise_as_a_gpu_would(spillway::chunk_view const& chunk, std::span<float const* const> masters) {
  for (std::size_t i = 0; i < chunk.runs.size(); ++i) {
    bool const narrow = chunk.runs[i].parameter_type == spillway::dtype::bfloat16;
    (narrow ? initialise_run<spillway::bf16> : initialise_run<float>)(chunk, chunk.runs[i], masters[i]);
  }
}

void update_as_a_gpu_would(spillway::adamw_kernel const& kernel, spillway::chunk_view const& chunk,
                           spillway::update_scalars const& scalars) {
  using spillway::bf16;
  for (spillway::run_view const& run : chunk.runs) {
    if (run.gradient == nullptr) continue;
    bool const narrow = run.parameter_type == spillway::dtype::bfloat16;
    if (run.gradient_type == spillway::dtype::bfloat16) {
      (narrow ? update_run<bf16, bf16> : update_run<bf16, float>)(kernel, chunk, run, scalars);
    } else {
      (narrow ? update_run<float, bf16> : update_run<float, float>)(kernel, chunk, run, scalars);
    }
  }
}
