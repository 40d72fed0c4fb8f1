// SPDX-License-Identifier: Apache-2.0
/// Updates chunks in the memory of a CUDA GPU.
#pragma once

#if !defined(__CUDACC__)
#error "updater.cuh needs nvcc; host code includes <spillway/optimizer/any_updater.hpp>, made in a .cu file"
#endif

#include <spillway/core/error.hpp>
#include <spillway/cuda/cuda_error.hpp>
#include <spillway/cuda/detail/current_device.hpp>
#include <spillway/cuda/detail/update_kernels.cuh>
#include <spillway/cuda/detail/updater_check.cuh>
#include <spillway/optimizer/adamw_kernel.hpp>
#include <spillway/optimizer/chunk_updater_concept.hpp>
#include <spillway/optimizer/stored.hpp>

#include <cuda_runtime.h>

#include <algorithm>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace spillway::inline v0::cuda {

/// `Kernel` is an ElementKernel whose update() is SPILLWAY_HOST_DEVICE, or one inside `stored<...>`. One pass over memory; the same
/// bits as host_updater, whatever flags nvcc is given.
/// Threads  safe; calls on one stream from one thread at a time.
template <class Kernel = adamw_kernel>
class updater {
  using storage = ::spillway::detail::storage_of<Kernel>;
  using rule = typename storage::kernel;
  static_assert(ElementKernel<rule>, "cuda::updater runs kernels that look at one element at a time");
  static_assert(rule::passes == 1, "cuda::updater runs kernels of one pass");

 public:
  /// The same hyper-parameters for every group. Checks on the current GPU that it computes the bits of the contract.
  /// Errors  without a driver or a GPU, what cudaGetDeviceCount says, by its name; numerics_altered when a bit differs.
  explicit updater(Kernel kernel = {}) : updater(std::vector<Kernel>{std::move(kernel)}) {}
  /// One kernel a group, in order of the group numbers.
  /// Errors  as above; invalid_option when there is none.
  explicit updater(std::vector<Kernel> by_group) : kernels_(std::move(by_group)) {
    if (kernels_.empty())
      throw error{errc::invalid_option, {.where = "cuda::updater", .detail = "no kernel for any group"}};
    static_cast<void>(detail::device_count("cuda::updater"));
    detail::check_updater<storage>(storage::bare(kernels_.front()));
    schema_ = {.kernel = std::string(rule::name),
               .arrays = storage::arrays(),
               .by_group = {rule::unit},
               .passes = rule::passes,
               .rule = storage::rule,
               .needs_parameter = storage::needs_parameter,
               .on_device = true,
               .groups = kernels_.size() == 1 ? 0 : kernels_.size()};
  }

  [[nodiscard]] updater_schema const& schema() const noexcept { return schema_; }

  /// Enqueues one launch a run that has a gradient.
  /// Pre     all addresses are the GPU's; the GPU of the stream is the thread's current one (cuda_device::submit sees to that).
  /// Errors  invalid_option when a run's group has no kernel; what a launch returns, by its name. Failures of the work itself come
  ///         from the stream's wait.
  void update(chunk_view const& chunk, update_scalars const& scalars, native_stream stream) {
    check_groups(chunk);
    for (run_view const& run : chunk.runs) {
      if (run.gradient == nullptr || run.count == 0) continue;
      auto const constants = kernel_for(run.group).prepare({run.step, scalars.learning_rate_factor});
      detail::launch_update<storage>(chunk, run, constants, scalars.gradient_scale,
                                     static_cast<cudaStream_t>(stream.handle));
    }
  }

  /// Pre, Errors  as for update(); masters[i] is [runs[i].count] in the GPU's memory.
  void initialise(chunk_view const& chunk, std::span<float const* const> masters, native_stream stream) {
    check_groups(chunk);
    for (std::size_t i = 0; i < chunk.runs.size(); ++i) {
      if (chunk.runs[i].count == 0) continue;
      detail::launch_initialise<storage>(chunk, chunk.runs[i], masters[i], static_cast<cudaStream_t>(stream.handle));
    }
  }

 private:
  void check_groups(chunk_view const& chunk) const {
    for (run_view const& run : chunk.runs) static_cast<void>(kernel_for(run.group));
  }
  [[nodiscard]] rule const& kernel_for(std::uint32_t group) const {
    if (kernels_.size() == 1) return storage::bare(kernels_[0]);
    if (group < kernels_.size()) return storage::bare(kernels_[group]);
    throw error{errc::invalid_option,
                {.where = "cuda::updater",
                 .detail = "group " + std::to_string(group) + " has no kernel: " + std::to_string(kernels_.size()) +
                           " were given"}};
  }

  std::vector<Kernel> kernels_;
  updater_schema schema_{};
};
static_assert(ChunkUpdater<updater<adamw_kernel>>);

}  // namespace spillway::inline v0::cuda
