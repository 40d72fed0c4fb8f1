// SPDX-License-Identifier: Apache-2.0
/// The least that models Communicator, and a near miss per requirement.
#pragma once

#include <spillway/comm/communicator_concept.hpp>

#include <cstddef>
#include <cstdint>
#include <span>

namespace spillway::inline v0::testing {

/// No default constructor, no copy.
struct minimal_communicator {
  explicit minimal_communicator(int) {}
  minimal_communicator(minimal_communicator&&) = default;
  minimal_communicator& operator=(minimal_communicator&&) = default;
  ~minimal_communicator() = default;
  [[nodiscard]] unsigned char rank() const { return 0; }
  [[nodiscard]] unsigned char world() const { return 1; }
  void all_reduce_sum(std::span<std::int64_t>) {}
  void broadcast(std::span<std::byte>, unsigned) {}
  void barrier() {}
};

namespace near_miss {

struct communicator_not_movable : minimal_communicator {
  using minimal_communicator::minimal_communicator;
  communicator_not_movable(communicator_not_movable&&) = delete;
};
struct communicator_rank_only_when_mutable : minimal_communicator {
  unsigned rank() { return 0; }
};
struct communicator_without_rank : minimal_communicator {
  void rank() const {}
};
struct communicator_without_world : minimal_communicator {
  void world() const {}
};
struct communicator_that_sums_doubles : minimal_communicator {
  void all_reduce_sum(std::span<double>) {}
};
struct communicator_that_cannot_change_the_sums : minimal_communicator {
  void all_reduce_sum(std::span<std::int64_t const>) = delete;
};
struct communicator_that_broadcasts_from_nobody : minimal_communicator {
  void broadcast(std::span<std::byte>) {}
};
struct communicator_that_broadcasts_text : minimal_communicator {
  void broadcast(std::span<char>, unsigned) {}
};
struct communicator_without_barrier : minimal_communicator {
  void barrier() = delete;
};

}  // namespace near_miss

}  // namespace spillway::inline v0::testing
