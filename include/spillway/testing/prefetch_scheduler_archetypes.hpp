// SPDX-License-Identifier: Apache-2.0
/// The least that models PrefetchScheduler, and a near miss per requirement.
#pragma once

#include <spillway/scheduler/prefetch_scheduler_concept.hpp>

#include <cstdint>
#include <span>
#include <vector>

namespace spillway::inline v0::testing {

/// No default constructor, no copy.
struct minimal_scheduler {
  explicit minimal_scheduler(int) {}
  minimal_scheduler(minimal_scheduler&&) = default;
  minimal_scheduler& operator=(minimal_scheduler&&) = default;
  ~minimal_scheduler() = default;
  void order(step_outline const&, std::span<std::uint32_t> out) {
    std::uint32_t next = 0;
    for (std::uint32_t& chunk : out) chunk = next++;
  }
  [[nodiscard]] unsigned char read_ahead() const { return 0; }
  void observe(step_times const&) {}
};

namespace near_miss {

struct scheduler_not_movable : minimal_scheduler {
  using minimal_scheduler::minimal_scheduler;
  scheduler_not_movable(scheduler_not_movable&&) = delete;
};
struct scheduler_that_returns_its_order : minimal_scheduler {
  std::vector<std::uint32_t> order(step_outline const&) { return {}; }
};
struct scheduler_that_orders_small_numbers : minimal_scheduler {
  void order(step_outline const&, std::span<std::uint16_t>) {}
};
struct scheduler_that_changes_the_outline : minimal_scheduler {
  void order(step_outline&, std::span<std::uint32_t>) {}
};
struct scheduler_without_read_ahead : minimal_scheduler {
  void read_ahead() const {}
};
struct scheduler_read_ahead_only_when_mutable : minimal_scheduler {
  unsigned read_ahead() { return 0; }
};
struct scheduler_that_does_not_observe : minimal_scheduler {
  void observe() {}
};
struct scheduler_that_changes_the_times : minimal_scheduler {
  void observe(step_times&) {}
};

}  // namespace near_miss

}  // namespace spillway::inline v0::testing
