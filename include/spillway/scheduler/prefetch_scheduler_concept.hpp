// SPDX-License-Identifier: Apache-2.0
/// The policy seam "in which order chunks are visited and how far ahead they are read". Requirements table: scheduler/README.md.
#pragma once

#include <concepts>
#include <cstdint>
#include <span>

namespace spillway::inline v0 {

/// What a scheduler is told about the step before it begins.
struct step_outline {
  std::uint64_t number = 0;  ///< of the update, counts from 1
  std::uint32_t chunks = 0;  ///< of the partition
  std::uint32_t slots = 0;   ///< staging slots of the pipeline
};

/// What a scheduler is told afterwards: seconds that each resource worked, and the whole step.
struct step_times {
  double wall = 0;
  double file_read = 0;
  double file_write = 0;
  double update = 0;
  double waiting_for_read = 0;   ///< the loop stood still for a chunk that was not there yet
  double waiting_for_write = 0;  ///< the loop stood still for a slot that was not free yet
};

/// Decides the walk of each step. Results never depend on it, only time does.
/// Semantics the compiler can't check: order() fills `out` with a permutation of 0 .. chunks-1 (checked by the pipeline:
/// errc::invalid_option); read_ahead() may be larger than there are slots, the pipeline takes what it can.
template <class S>
concept PrefetchScheduler = std::movable<S> && requires(S& scheduler, S const& view, step_outline const& outline,
                                                        std::span<std::uint32_t> out, step_times const& times) {
  scheduler.order(outline, out);
  { view.read_ahead() } -> std::convertible_to<unsigned>;  // chunks read beyond the one being updated
  scheduler.observe(times);
};

}  // namespace spillway::inline v0
