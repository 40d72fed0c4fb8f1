// SPDX-License-Identifier: Apache-2.0
#include <spillway/comm/single_process.hpp>
#include <spillway/testing/communicator_conformance.hpp>

#include <mutex>
#include <string>
#include <vector>

#include "support/catch.hpp"
#include "support/thread_communicator.hpp"

using spillway::testing::check_communicator;

namespace {
std::vector<std::string> const none;
}

TEST_CASE("communicator conformance: single_process") {
  spillway::single_process alone;
  CHECK(check_communicator(alone) == none);
}

TEST_CASE("communicator conformance: a user's communicator, on 1 to 4 ranks") {
  for (unsigned world = 1; world <= 4; ++world) {
    std::vector<std::string> broken;
    std::mutex guard;
    test::on_ranks(world, [&](auto& comm) {
      auto const seen = check_communicator(comm);
      std::lock_guard const lock(guard);
      broken.insert(broken.end(), seen.begin(), seen.end());
    });
    CHECK(broken == none);
  }
}

namespace {
/// Communicators that break one law each: the suite must see it.
struct communicator_beyond_its_world : spillway::single_process {
  static unsigned rank() noexcept { return 1; }
};
struct communicator_that_sums_in_double : spillway::single_process {
  static void all_reduce_sum(std::span<std::int64_t> numbers) {
    for (std::int64_t& n : numbers) n = n == std::numeric_limits<std::int64_t>::max() ? n - 1 : n;
  }
};
struct communicator_that_counts_twice : spillway::single_process {
  static void all_reduce_sum(std::span<std::int64_t> numbers) {
    for (std::int64_t& n : numbers) n = static_cast<std::int64_t>(2 * static_cast<std::uint64_t>(n));
  }
};
struct communicator_that_broadcasts_zeros : spillway::single_process {
  static void broadcast(std::span<std::byte> data, unsigned) {
    for (std::byte& b : data) b = {};
  }
};
}  // namespace

TEMPLATE_TEST_CASE("communicator conformance: a communicator that breaks a law is seen", "",
                   communicator_beyond_its_world, communicator_that_sums_in_double, communicator_that_counts_twice,
                   communicator_that_broadcasts_zeros) {
  TestType comm;
  CHECK(check_communicator(comm) != none);
}
