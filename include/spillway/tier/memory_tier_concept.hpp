// SPDX-License-Identifier: Apache-2.0
/// The policy seam "where bytes live". Requirements table: tier/README.md.
#pragma once

#include <spillway/core/bytes.hpp>
#include <spillway/core/transfer_concept.hpp>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>

namespace spillway::inline v0 {

/// Compile-time facts about a tier. New members go at the end, with a default.
struct tier_traits {
  bool host_addressable = false;    ///< data(region) gives a pointer that host code may use
  bool device_addressable = false;  ///< data(region) gives a pointer that device tasks may use
  bool persistent = false;          ///< contents survive the process
  bool verbatim = true;             ///< what lies in the tier's medium is exactly what was written
  bytes alignment{1};               ///< offsets, lengths and addresses of reads and writes are multiples of it
};

/// Bytes of one tier, handed out by it; a plain value, owned by nobody. Only that tier reads and writes them.
struct region {
  std::uint64_t id = 0;  ///< whatever the tier makes of it
  bytes size{};
  friend constexpr bool operator==(region const&, region const&) noexcept = default;
};

/// A place bytes can live, which moves its own bytes.
/// Semantics the compiler can't check: live regions never overlap; a transfer touches its span until it is done, never after;
/// deallocate() takes only a region that this tier, or the tier it was moved from, handed out, with no transfer in flight;
/// what flush() completed after is where it will be found again (on a persistent tier: after power loss). A read of bytes
/// whose write is not done yet is a bug of the caller.
template <class T>
concept MemoryTier = std::movable<T> &&
    requires(T& tier, T const& view, region r, bytes n, std::span<std::byte> to, std::span<std::byte const> from) {
  requires std::same_as<decltype(T::traits), tier_traits const>;
  { tier.allocate(n) } -> std::same_as<region>;  // throws capacity_exceeded, or what its medium says
  { tier.read(r, n, to) } -> Transfer;
  { tier.write(r, n, from) } -> Transfer;
  { tier.flush() } -> Transfer;
  { view.capacity() } -> std::same_as<bytes>;  // what it can hold in all; bytes{2^64-1}: no limit known
  tier.deallocate(r);
  requires noexcept(tier.deallocate(r));
  requires noexcept(view.capacity());
};

/// A tier whose bytes host code may use in place.
template <class T>
concept HostAddressableTier = MemoryTier<T> && T::traits.host_addressable&& requires(T& tier, region r) {
  { tier.data(r) } -> std::same_as<std::byte*>;
  requires noexcept(tier.data(r));
};

}  // namespace spillway::inline v0
