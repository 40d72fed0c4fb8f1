// SPDX-License-Identifier: Apache-2.0
/// Numbers of a pipeline and of one step.
#pragma once

#include <spillway/execution/thread_pool.hpp>
#include <spillway/layout/parameter_layout.hpp>
#include <spillway/observe/timeline.hpp>

#include <cstdint>
#include <memory>

namespace spillway::inline v0 {

/// Fixed for the life of a pipeline. With as much staging memory in 4 larger chunks a step took 3 % longer on idle processors and
/// a tenth longer on busy ones (benchmark file_step, 2 cores).
struct pipeline_options {
  std::uint64_t chunk_elements = std::uint64_t{2} << 20U;  ///< of one chunk; rounded down to blocks of 1024
  unsigned slots = 8;                                      ///< staging buffers of one chunk each, at least 2
  unsigned micro_batches = 1;           ///< gradients per step; over 1: an fp32 sum is kept, 4 B an element
  std::shared_ptr<thread_pool> pool{};  ///< for norms; null: one of its own
  timeline* trace = nullptr;            ///< where to note what happened when; lives as long as the pipeline
};

/// Of one step.
struct step_options {
  double learning_rate_factor = 1;  ///< of the schedule; multiplies each kernel's own learning rate
  double max_norm = 0;              ///< clip the global norm to this; 0: no clipping
  double loss_scale = 1;  ///< what gradients were multiplied by; with k summed micro-batches of mean losses, k times it
};

}  // namespace spillway::inline v0
