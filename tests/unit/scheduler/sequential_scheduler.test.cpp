// SPDX-License-Identifier: Apache-2.0
#include <spillway/scheduler/sequential_scheduler.hpp>

#include <cstdint>
#include <span>
#include <vector>

#include "support/catch.hpp"

TEST_CASE("sequential_scheduler: from the first chunk to the last, whatever the step was like") {
  spillway::sequential_scheduler const scheduler{.depth = 7};
  std::vector<std::uint32_t> order(5, 99);
  for (std::uint64_t step = 1; step < 4; ++step) {
    scheduler.order({.number = step, .chunks = 5, .slots = 2}, order);
    CHECK(order == std::vector<std::uint32_t>{0, 1, 2, 3, 4});
    scheduler.observe({.wall = 1, .waiting_for_read = 1});
  }
  CHECK(scheduler.read_ahead() == 7);
  CHECK(spillway::sequential_scheduler{}.read_ahead() >= 1);
  scheduler.order({}, std::span<std::uint32_t>{});
}
