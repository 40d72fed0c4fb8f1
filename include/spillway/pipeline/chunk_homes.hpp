// SPDX-License-Identifier: Apache-2.0
/// Where each chunk rests: its tier, its place there, and how its arrays are reached.
#pragma once

#include <spillway/core/error.hpp>
#include <spillway/layout/chunk_plan.hpp>
#include <spillway/layout/stored_array.hpp>
#include <spillway/pipeline/detail/any_transfer.hpp>
#include <spillway/tier/tier_stack.hpp>

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace spillway::inline v0 {

namespace detail {
template <class T>
struct stack_of {};
template <MemoryTier T>
struct stack_of<T> {
  using type = tier_stack<T>;
  static type make(T tier) { return type{share<T>{1.0, std::move(tier)}}; }
};
template <class... T>
struct stack_of<tier_stack<T...>> {
  using type = tier_stack<T...>;
  static type make(type stack) { return stack; }
};
}  // namespace detail

/// One tier, or a stack of them.
template <class T>
concept TierOrStack = requires {
  typename detail::stack_of<T>::type;
};

/// Bytes that the chunks of each tier of a stack take: back to back where bytes are moved, as slots where the host updates them
/// in place.
template <MemoryTier... T>
[[nodiscard]] std::array<bytes, sizeof...(T)> state_bytes(tier_stack<T...> const& stack,
                                                          std::span<stored_array const> arrays,
                                                          chunk_plan const& chunks) {
  constexpr std::array<bool, sizeof...(T)> in_place{HostAddressableTier<T>...};
  std::array<bytes, sizeof...(T)> sums{};
  std::vector<std::uint32_t> const placed = stack.place(chunks.size());
  for (std::size_t i = 0; i < chunks.size(); ++i) {
    std::uint64_t const blocks = chunks[i].blocks.size();
    sums[placed[i]] += in_place[placed[i]] ? slot_bytes(arrays, blocks) : dense_bytes(arrays, blocks);
  }
  return sums;
}

/// One region a tier, in which its chunks lie in order: back to back where bytes are moved (the layout of files), at staggered
/// starts where the host updates them in place.
/// Threads: one thread at a time.
template <TierOrStack Tiers>
class chunk_homes {
 public:
  using stack = typename detail::stack_of<Tiers>::type;

  /// Allocates everything.
  /// Errors  what the tiers throw: capacity_exceeded, no space left.
  chunk_homes(Tiers tiers, std::span<stored_array const> arrays, chunk_plan const& chunks)
      : stack_(detail::stack_of<Tiers>::make(std::move(tiers))), arrays_(arrays.begin(), arrays.end()) {
    std::vector<std::uint32_t> const placed = stack_.place(chunks.size());
    std::array<bytes, stack::size> filled{};
    places_.reserve(chunks.size());
    for (std::size_t i = 0; i < chunks.size(); ++i) {
      std::uint64_t const blocks = chunks[i].blocks.size();
      places_.push_back({placed[i], blocks, filled[placed[i]]});
      filled[placed[i]] += addressable(placed[i]) ? slot_bytes(arrays_, blocks) : dense_bytes(arrays_, blocks);
    }
    std::array<bytes, stack::size> const sizes = state_bytes(stack_, arrays_, chunks);
    try {
      for (std::size_t tier = 0; tier < stack::size; ++tier) {
        if (sizes[tier].count == 0) continue;
        regions_[tier] = stack_.visit(tier, [&](auto& t) { return t.allocate(sizes[tier]); });
      }
    } catch (...) {
      release();
      throw;
    }
  }
  chunk_homes(chunk_homes const&) = delete;
  chunk_homes& operator=(chunk_homes const&) = delete;
  ~chunk_homes() { release(); }

  [[nodiscard]] stack& tiers() noexcept { return stack_; }
  [[nodiscard]] std::size_t tier_of(std::size_t chunk) const noexcept { return places_[chunk].tier; }
  [[nodiscard]] bytes held_by(std::size_t tier) const noexcept { return regions_[tier].size; }
  /// The host works on the chunk where it rests.
  [[nodiscard]] bool in_place(std::size_t chunk) const noexcept { return addressable(places_[chunk].tier); }
  /// Pre: in_place(chunk).
  [[nodiscard]] std::byte* data(std::size_t chunk, std::size_t array) noexcept {
    place const& p = places_[chunk];
    return stack_.visit(p.tier, [&](auto& tier) -> std::byte* {
      if constexpr (HostAddressableTier<std::remove_cvref_t<decltype(tier)>>) {
        return tier.data(regions_[p.tier]) + (p.offset + slot_offset(arrays_, array, p.blocks)).count;
      } else {
        return nullptr;
      }
    });
  }
  [[nodiscard]] detail::any_transfer read(std::size_t chunk, std::size_t array, std::span<std::byte> to) {
    place const& p = places_[chunk];
    return stack_.visit(
        p.tier, [&](auto& tier) { return detail::any_transfer(tier.read(regions_[p.tier], offset(p, array), to)); });
  }
  [[nodiscard]] detail::any_transfer write(std::size_t chunk, std::size_t array, std::span<std::byte const> from) {
    place const& p = places_[chunk];
    return stack_.visit(
        p.tier, [&](auto& tier) { return detail::any_transfer(tier.write(regions_[p.tier], offset(p, array), from)); });
  }

 private:
  struct place {
    std::uint32_t tier;
    std::uint64_t blocks;
    bytes offset;
  };
  [[nodiscard]] bool addressable(std::size_t tier) const noexcept {
    return stack_.visit(tier, [](auto& t) { return HostAddressableTier<std::remove_cvref_t<decltype(t)>>; });
  }
  [[nodiscard]] bytes offset(place const& p, std::size_t array) const noexcept {
    return p.offset + dense_offset(arrays_, array, p.blocks);
  }
  void release() noexcept {
    for (std::size_t tier = 0; tier < stack::size; ++tier) {
      if (regions_[tier].size.count == 0) continue;
      stack_.visit(tier, [&](auto& t) { t.deallocate(std::exchange(regions_[tier], region{})); });
    }
  }
  stack stack_;
  std::vector<stored_array> arrays_;
  std::vector<place> places_{};
  std::array<region, stack::size> regions_{};
};

}  // namespace spillway::inline v0
