// SPDX-License-Identifier: Apache-2.0
/// Any tier under a lower capacity.
#pragma once

#include <spillway/core/bytes.hpp>
#include <spillway/core/error.hpp>
#include <spillway/tier/memory_tier_concept.hpp>

#include <algorithm>
#include <cstddef>
#include <span>
#include <utility>

namespace spillway::inline v0 {

/// Lends out at most `limit` bytes of `Inner`, counted as asked for; all else is Inner's.
/// Threads  as Inner's; allocate and deallocate: one at a time.
template <MemoryTier Inner>
class limiting_tier {
 public:
  static constexpr tier_traits traits = Inner::traits;

  limiting_tier(Inner inner, bytes limit) : inner_(std::move(inner)), limit_(limit) {}

  /// Errors  capacity_exceeded, with what is left; Inner's.
  [[nodiscard]] region allocate(bytes n) {
    bytes const left = limit_ - used_;
    if (n > left) throw error{errc::capacity_exceeded, {.where = "limiting_tier allocate", .wanted = n, .got = left}};
    region const r = inner_.allocate(n);
    used_ += n;
    return r;
  }
  void deallocate(region r) noexcept {
    inner_.deallocate(r);
    used_ -= r.size;
  }
  [[nodiscard]] auto read(region r, bytes offset, std::span<std::byte> to) { return inner_.read(r, offset, to); }
  [[nodiscard]] auto write(region r, bytes offset, std::span<std::byte const> from) {
    return inner_.write(r, offset, from);
  }
  [[nodiscard]] auto flush() { return inner_.flush(); }
  [[nodiscard]] bytes capacity() const noexcept { return std::min(limit_, inner_.capacity()); }
  // A template, since clang 14 instantiates a constrained member with the class.
  template <HostAddressableTier I = Inner>
  [[nodiscard]] std::byte* data(region r) noexcept {
    return inner_.data(r);
  }
  [[nodiscard]] Inner& inner() noexcept { return inner_; }
  [[nodiscard]] Inner const& inner() const noexcept { return inner_; }

 private:
  [[no_unique_address]] Inner inner_;
  bytes limit_;
  bytes used_{};
};

}  // namespace spillway::inline v0
