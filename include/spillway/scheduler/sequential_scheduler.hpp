// SPDX-License-Identifier: Apache-2.0
/// Chunks in order of the flat space.
#pragma once

#include <spillway/scheduler/prefetch_scheduler_concept.hpp>

namespace spillway::inline v0 {

/// Every step walks from the first chunk to the last.
struct sequential_scheduler {
  unsigned depth = 4;  ///< chunks read ahead

  static void order(step_outline const&, std::span<std::uint32_t> out) noexcept {
    for (std::uint32_t i = 0; i < out.size(); ++i) out[i] = i;
  }
  [[nodiscard]] unsigned read_ahead() const noexcept { return depth; }
  static void observe(step_times const&) noexcept {}
};
static_assert(PrefetchScheduler<sequential_scheduler>);

}  // namespace spillway::inline v0
