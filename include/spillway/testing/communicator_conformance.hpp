// SPDX-License-Identifier: Apache-2.0
/// What a Communicator promises beyond what the compiler checks, as a list of broken laws. For users' own communicators too.
#pragma once

#include <spillway/comm/communicator_concept.hpp>
#include <spillway/testing/detail/law_list.hpp>

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <vector>

namespace spillway::inline v0::testing {

/// Tries the laws of Communicator. Collective: every rank of the group calls it with its own. The broken laws that this rank
/// saw; empty: it passes.
/// Errors  none of the communicator's: what it throws is a broken law.
template <Communicator C>
[[nodiscard]] std::vector<std::string> check_communicator(C& comm) {
  detail::law_list laws;
  auto const rank = static_cast<std::int64_t>(comm.rank());
  auto const world = static_cast<std::int64_t>(comm.world());
  laws.law("rank", [&] { laws.expect(world >= 1 && rank < world, "the rank is not below the world"); });
  laws.law("all_reduce_sum", [&] {
    for (std::size_t const n : {std::size_t{0}, std::size_t{1}, std::size_t{70}, std::size_t{5000}}) {
      std::vector<std::int64_t> numbers(n);
      for (std::size_t i = 0; i < n; ++i) numbers[i] = rank * 1000 - static_cast<std::int64_t>(i);
      comm.all_reduce_sum(std::span{numbers});
      bool exact = true;
      for (std::size_t i = 0; i < n; ++i) {
        exact = exact && numbers[i] == 1000 * (world * (world - 1) / 2) - world * static_cast<std::int64_t>(i);
      }
      laws.expect(exact, "a sum of " + std::to_string(n) + " numbers is wrong");
    }
    std::int64_t large[] = {rank == 0 ? std::numeric_limits<std::int64_t>::max() : 0, rank == world - 1 ? 1 : 0,
                            (std::int64_t{1} << 53U) + rank};
    comm.all_reduce_sum(std::span<std::int64_t>{large, 2});
    laws.expect(large[0] == std::numeric_limits<std::int64_t>::max() && large[1] == 1, "a large sum is wrong");
    laws.expect(large[2] == (std::int64_t{1} << 53U) + rank, "a number beyond the span was changed");
  });
  laws.law("broadcast", [&] {
    for (std::size_t const n : {std::size_t{0}, std::size_t{1}, std::size_t{100000}}) {
      std::vector<std::byte> data(n);
      std::vector<std::byte> from_zero(n);
      detail::fill_pattern(data, static_cast<std::uint64_t>(rank));
      detail::fill_pattern(from_zero, 0);
      comm.broadcast(std::span{data}, 0U);
      laws.expect(data == from_zero, std::to_string(n) + " B are not those of rank 0");
    }
  });
  laws.law("barrier", [&] {
    comm.barrier();
    comm.barrier();
  });
  return laws.take();
}

}  // namespace spillway::inline v0::testing
