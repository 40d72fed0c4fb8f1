// SPDX-License-Identifier: Apache-2.0
/// The policy seam "the other ranks". Requirements table: comm/README.md.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>

namespace spillway::inline v0 {

/// A group of ranks. Every call but rank() and world() is collective.
/// Semantics the compiler can't check: all_reduce_sum is exact integer addition modulo 2^64, element by element; when a call
/// returns on any rank its result is complete there.
template <class C>
concept Communicator = std::movable<C> &&
    requires(C& comm, C const& view, std::span<std::int64_t> numbers, std::span<std::byte> data) {
  { view.rank() } -> std::convertible_to<unsigned>;
  { view.world() } -> std::convertible_to<unsigned>;
  comm.all_reduce_sum(numbers);
  comm.broadcast(data, 0U);  // from rank 0
  comm.barrier();
};

}  // namespace spillway::inline v0
