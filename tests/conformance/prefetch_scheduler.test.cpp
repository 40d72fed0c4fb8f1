// SPDX-License-Identifier: Apache-2.0
#include <spillway/scheduler/sequential_scheduler.hpp>
#include <spillway/testing/prefetch_scheduler_conformance.hpp>

#include <stdexcept>
#include <string>
#include <vector>

#include "support/catch.hpp"
#include "support/user_schedulers.hpp"

using spillway::testing::check_prefetch_scheduler;

namespace {
std::vector<std::string> const none;
}

TEMPLATE_TEST_CASE("prefetch scheduler conformance: ", "", spillway::sequential_scheduler, test::reverse_scheduler,
                   test::shuffling_scheduler, test::interleaved_scheduler) {
  TestType scheduler;
  CHECK(check_prefetch_scheduler(scheduler) == none);
}

namespace {
/// Schedulers that break one law each: the suite must see it.
struct scheduler_that_starts_at_one : spillway::sequential_scheduler {
  static void order(spillway::step_outline const&, std::span<std::uint32_t> out) noexcept {
    for (std::uint32_t i = 0; i < out.size(); ++i) out[i] = i + 1;
  }
};
struct scheduler_that_visits_evens_twice : spillway::sequential_scheduler {
  static void order(spillway::step_outline const&, std::span<std::uint32_t> out) noexcept {
    for (std::uint32_t i = 0; i < out.size(); ++i) out[i] = i / 2 * 2;
  }
};
struct scheduler_that_writes_one_too_many : spillway::sequential_scheduler {
  static void order(spillway::step_outline const& step, std::span<std::uint32_t> out) noexcept {
    sequential_scheduler::order(step, out);
    out.data()[out.size()] = 0;
  }
};
struct scheduler_that_fears_nothing_to_do : spillway::sequential_scheduler {
  static void order(spillway::step_outline const& step, std::span<std::uint32_t> out) {
    if (out.empty()) throw std::runtime_error("no chunks");
    sequential_scheduler::order(step, out);
  }
};
struct scheduler_that_divides_by_times : spillway::sequential_scheduler {
  double speed = 1;
  void observe(spillway::step_times const& times) { speed = times.wall / times.file_read; }
  void order(spillway::step_outline const& step, std::span<std::uint32_t> out) const {
    sequential_scheduler::order(step, out);
    if (!out.empty() && !(speed > 0)) out[0] = ~0U;  // 0 / 0
  }
};
}  // namespace

TEMPLATE_TEST_CASE("prefetch scheduler conformance: a scheduler that breaks a law is seen", "",
                   scheduler_that_starts_at_one, scheduler_that_visits_evens_twice, scheduler_that_writes_one_too_many,
                   scheduler_that_fears_nothing_to_do, scheduler_that_divides_by_times) {
  TestType scheduler;
  CHECK(check_prefetch_scheduler(scheduler) != none);
}
