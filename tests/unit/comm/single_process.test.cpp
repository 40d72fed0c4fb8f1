// SPDX-License-Identifier: Apache-2.0
#include <spillway/comm/single_process.hpp>

#include <cstddef>
#include <cstdint>
#include <vector>

#include "support/catch.hpp"

TEST_CASE("single_process: a world of one, in which collectives change nothing") {
  spillway::single_process const alone;
  CHECK(alone.rank() == 0);
  CHECK(alone.world() == 1);
  std::vector<std::int64_t> numbers{1, -2, std::int64_t{1} << 60U};
  auto const before = numbers;
  alone.all_reduce_sum(numbers);
  CHECK(numbers == before);
  std::vector<std::byte> data{std::byte{1}, std::byte{2}};
  alone.broadcast(data, 0);
  CHECK(data == std::vector<std::byte>{std::byte{1}, std::byte{2}});
  alone.barrier();
}
