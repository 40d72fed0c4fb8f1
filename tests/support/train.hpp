// SPDX-License-Identifier: Apache-2.0
/// Whole short runs of an offload_pipeline on recorded gradients, for comparing what they end with.
#pragma once

#include <spillway/optimizer/host_updater.hpp>
#include <spillway/pipeline/offload_pipeline.hpp>
#include <spillway/scheduler/sequential_scheduler.hpp>

#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

#include "support/training_run.hpp"

namespace test {

/// AdamW with and without decay, by group, on `threads` threads.
inline spillway::host_updater<> two_groups(unsigned threads = 1) {
  return spillway::host_updater<>(
      std::vector<spillway::adamw_kernel>{{.lr = 0.01, .weight_decay = 0.1}, {.lr = 0.02, .weight_decay = 0}},
      std::make_shared<spillway::thread_pool>(threads));
}
/// Options of a pipeline with a pool of its own of one thread.
inline spillway::pipeline_options cut(std::uint64_t chunk_elements, unsigned slots = 4) {
  return {.chunk_elements = chunk_elements, .slots = slots, .pool = std::make_shared<spillway::thread_pool>(1)};
}

/// Three steps from recorded weights; what is there at the end.
template <class Tiers, class Updater = spillway::host_updater<>, class Scheduler = spillway::sequential_scheduler>
snapshot train(Tiers tiers, spillway::pipeline_options options = cut(65536), Updater updater = two_groups(),
               Scheduler scheduler = {}, unsigned steps = 3) {
  spillway::host_device device({.memory = spillway::bytes{16U << 20U}});
  spillway::offload_pipeline<Tiers, Updater, Scheduler> pipeline(training_layout(), device, std::move(tiers),
                                                                 std::move(updater), std::move(scheduler), options);
  trainer run(device, pipeline);
  run.initialise();
  for (unsigned i = 0; i < steps; ++i) run.step();
  return snapshot_of(pipeline);
}

}  // namespace test
