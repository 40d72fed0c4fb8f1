// SPDX-License-Identifier: Apache-2.0
/// The least that models MemoryTier and HostAddressableTier, and a near miss per requirement.
#pragma once

#include <spillway/core/bytes.hpp>
#include <spillway/testing/transfer_archetypes.hpp>
#include <spillway/tier/memory_tier_concept.hpp>

#include <cstddef>
#include <cstdint>
#include <span>

namespace spillway::inline v0::testing {

struct minimal_tier {
  static constexpr tier_traits traits{};
  explicit minimal_tier(int) noexcept {}  // no default constructor, no copy
  minimal_tier(minimal_tier&&) noexcept = default;
  minimal_tier& operator=(minimal_tier&&) noexcept = default;
  ~minimal_tier() = default;
  region allocate(bytes n) { return {0, n}; }
  minimal_transfer read(region, bytes, std::span<std::byte>) { return minimal_transfer{0}; }
  minimal_transfer write(region, bytes, std::span<std::byte const>) { return minimal_transfer{0}; }
  minimal_transfer flush() { return minimal_transfer{0}; }
  void deallocate(region) noexcept {}
  [[nodiscard]] bytes capacity() const noexcept { return {}; }
};
struct minimal_host_tier : minimal_tier {
  static constexpr tier_traits traits{.host_addressable = true};
  using minimal_tier::minimal_tier;
  std::byte* data(region) noexcept { return nullptr; }
};

namespace near_miss {

struct tier_not_movable : minimal_tier {
  using minimal_tier::minimal_tier;
  tier_not_movable(tier_not_movable&&) = delete;
  tier_not_movable& operator=(tier_not_movable&&) = delete;
  ~tier_not_movable() = default;
};
struct tier_without_traits : minimal_tier {
  using traits = void;
};
struct tier_traits_not_constant : minimal_tier {
  inline static tier_traits traits{};
};
struct tier_allocate_returns_id : minimal_tier {
  std::uint64_t allocate(bytes) { return 0; }
};
struct tier_read_returns_count : minimal_tier {
  std::size_t read(region, bytes, std::span<std::byte>) { return 0; }
};
struct tier_write_returns_count : minimal_tier {
  std::size_t write(region, bytes, std::span<std::byte const>) { return 0; }
};
struct tier_write_takes_mutable_bytes : minimal_tier {
  minimal_transfer write(region, bytes, std::span<std::byte>) { return minimal_transfer{0}; }
};
struct tier_flush_returns_nothing : minimal_tier {
  void flush() {}
};
struct tier_without_deallocate : minimal_tier {
  void deallocate(region) = delete;
};
struct tier_throwing_deallocate : minimal_tier {
  void deallocate(region) {}
};
struct tier_capacity_is_a_number : minimal_tier {
  [[nodiscard]] std::uint64_t capacity() const noexcept { return 0; }
};
struct tier_mutable_capacity : minimal_tier {
  bytes capacity() noexcept { return {}; }
};
struct tier_throwing_capacity : minimal_tier {
  [[nodiscard]] bytes capacity() const { return {}; }
};
// MemoryTiers that are not HostAddressableTiers.
struct tier_claims_to_be_addressable : minimal_tier {
  static constexpr tier_traits traits{.host_addressable = true};
  using minimal_tier::minimal_tier;
};
struct tier_data_without_claim : minimal_tier {
  using minimal_tier::minimal_tier;
  std::byte* data(region) noexcept { return nullptr; }
};
struct tier_data_is_void : minimal_host_tier {
  using minimal_host_tier::minimal_host_tier;
  void* data(region) noexcept { return nullptr; }
};
struct tier_throwing_data : minimal_host_tier {
  using minimal_host_tier::minimal_host_tier;
  std::byte* data(region) { return nullptr; }
};

}  // namespace near_miss

}  // namespace spillway::inline v0::testing
