// SPDX-License-Identifier: Apache-2.0
/// Any tier, with every byte that it moves counted.
#pragma once

#include <spillway/core/bytes.hpp>
#include <spillway/tier/memory_tier_concept.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>

namespace spillway::inline v0 {

/// What a counting_tier has seen. Shared, so that it can be read while a pipeline owns the tier.
/// Threads  safe; each number is exact, two of them need not be of the same moment.
struct tier_counts {
  std::atomic<std::uint64_t> bytes_read{0};
  std::atomic<std::uint64_t> bytes_written{0};
  std::atomic<std::uint64_t> reads{0};
  std::atomic<std::uint64_t> writes{0};
  std::atomic<std::uint64_t> flushes{0};
  std::atomic<std::uint64_t> allocated{0};  ///< bytes of live regions, as asked for
  std::atomic<std::uint64_t> peak_allocated{0};
};

/// Counts when a transfer starts. Not addressable even if Inner is: bytes touched in place would not be seen.
/// Threads  as Inner's.
template <MemoryTier Inner>
class counting_tier {
 public:
  static constexpr tier_traits traits = [] {
    tier_traits t = Inner::traits;
    t.host_addressable = t.device_addressable = false;
    return t;
  }();

  explicit counting_tier(Inner inner, std::shared_ptr<tier_counts> counts = std::make_shared<tier_counts>())
      : inner_(std::move(inner)), counts_(std::move(counts)) {}

  [[nodiscard]] region allocate(bytes n) {
    region const r = inner_.allocate(n);
    std::uint64_t const now = counts_->allocated += r.size.count;
    std::uint64_t peak = counts_->peak_allocated;
    while (now > peak && !counts_->peak_allocated.compare_exchange_weak(peak, now)) {
    }
    return r;
  }
  void deallocate(region r) noexcept {
    inner_.deallocate(r);
    counts_->allocated -= r.size.count;
  }
  [[nodiscard]] auto read(region r, bytes offset, std::span<std::byte> to) {
    counts_->bytes_read += to.size();
    ++counts_->reads;
    return inner_.read(r, offset, to);
  }
  [[nodiscard]] auto write(region r, bytes offset, std::span<std::byte const> from) {
    counts_->bytes_written += from.size();
    ++counts_->writes;
    return inner_.write(r, offset, from);
  }
  [[nodiscard]] auto flush() {
    ++counts_->flushes;
    return inner_.flush();
  }
  [[nodiscard]] bytes capacity() const noexcept { return inner_.capacity(); }
  [[nodiscard]] std::shared_ptr<tier_counts const> counts() const noexcept { return counts_; }
  [[nodiscard]] Inner& inner() noexcept { return inner_; }
  [[nodiscard]] Inner const& inner() const noexcept { return inner_; }

 private:
  [[no_unique_address]] Inner inner_;
  std::shared_ptr<tier_counts> counts_;
};

}  // namespace spillway::inline v0
