// SPDX-License-Identifier: Apache-2.0
/// The MemoryTier in the process's own memory, under a budget.
#pragma once

#include <spillway/core/bytes.hpp>
#include <spillway/core/config.hpp>
#include <spillway/core/error.hpp>
#include <spillway/core/transfer_concept.hpp>
#include <spillway/io/huge_buffer.hpp>
#include <spillway/tier/memory_tier_concept.hpp>

#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>
#include <span>
#include <utility>

namespace spillway::inline v0 {

/// Host memory, one mapping a region: touched when allocated, in huge pages from 2 MiB on where the machine gives
/// them, given back to the system when deallocated. A region is charged in whole small pages.
/// Threads  allocate and deallocate: one at a time. read, write and data: safe beside each other and beside those.
class host_tier {
 public:
  static constexpr tier_traits traits{.host_addressable = true};

  explicit host_tier(bytes capacity) noexcept : capacity_(capacity) {}

  /// Errors  capacity_exceeded, with what is left; what mmap said.
  [[nodiscard]] region allocate(bytes n) {
    if (n.count == 0) return {};
    bytes const left = capacity_ - used_;
    bytes const page{static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE))};
    if (n > left || round_up(n, page) > left) {
      throw error{errc::capacity_exceeded, {.where = "host_tier allocate", .wanted = n, .got = left}};
    }
    huge_buffer buffer{n, {.quantum = page}};
    auto const id = reinterpret_cast<std::uintptr_t>(buffer.data());
    bytes const held = buffer.held();
    regions_.emplace(id, std::move(buffer));
    used_ += held;
    return {id, n};
  }
  void deallocate(region r) noexcept {
    if (r.size.count == 0) return;
    auto const found = regions_.find(r.id);
    SPILLWAY_EXPECTS(found != regions_.end());
    used_ -= found->second.held();
    regions_.erase(found);
  }
  /// Pre  [offset, offset + to.size()) lies in r.
  [[nodiscard]] completed read(region r, bytes offset, std::span<std::byte> to) noexcept {
    SPILLWAY_EXPECTS(offset <= r.size && to.size() <= (r.size - offset).count);
    if (!to.empty()) std::memcpy(to.data(), data(r) + offset.count, to.size());
    return {};
  }
  /// Pre  [offset, offset + from.size()) lies in r.
  [[nodiscard]] completed write(region r, bytes offset, std::span<std::byte const> from) noexcept {
    SPILLWAY_EXPECTS(offset <= r.size && from.size() <= (r.size - offset).count);
    if (!from.empty()) std::memcpy(data(r) + offset.count, from.data(), from.size());
    return {};
  }
  [[nodiscard]] static completed flush() noexcept { return {}; }
  /// Aligned to a small page; to 2 MiB for regions of 2 MiB or more.
  [[nodiscard]] static std::byte* data(region r) noexcept {
    return reinterpret_cast<std::byte*>(static_cast<std::uintptr_t>(r.id));
  }
  [[nodiscard]] bytes capacity() const noexcept { return capacity_; }
  [[nodiscard]] bytes used() const noexcept { return used_; }

 private:
  bytes capacity_;
  bytes used_{};
  std::map<std::uint64_t, huge_buffer> regions_;  // by address, which is the region's id
};
static_assert(HostAddressableTier<host_tier>);

}  // namespace spillway::inline v0
