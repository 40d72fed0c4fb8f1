// SPDX-License-Identifier: Apache-2.0
/// The memory of the simulated accelerator: two ranges of addresses, and who owns which part.
#pragma once

#include <spillway/core/bytes.hpp>
#include <spillway/core/config.hpp>
#include <spillway/core/error.hpp>
#include <spillway/device/device_concept.hpp>

#include <sys/mman.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <map>
#include <mutex>
#include <string>

namespace spillway::inline v0::detail {

/// `size` addresses of anonymous memory, given back on destruction; pages exist once they are touched.
class address_range {
 public:
  address_range(bytes size, int protection, char const* what) : size_(size.count) {
    void* const start = ::mmap(nullptr, size_, protection, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (start == MAP_FAILED) throw error{last_system_error(), {.where = "host_device", .wanted = size, .detail = what}};
    start_ = static_cast<std::byte*>(start);
  }
  address_range(address_range const&) = delete;
  address_range& operator=(address_range const&) = delete;
  ~address_range() { ::munmap(start_, size_); }

  [[nodiscard]] std::byte* start() const noexcept { return start_; }

 private:
  std::byte* start_ = nullptr;
  std::uint64_t size_;
};

/// First fit in units of 256 B. Addresses that it hands out fault on any use; window() is where their bytes are.
/// Threads  every member may be called from any thread.
class host_device_memory {
 public:
  static constexpr bytes granule{256};  // as cudaMalloc
  static constexpr bytes page{4096};

  explicit host_device_memory(bytes capacity)
      : capacity_(capacity),
        addresses_(round_up(capacity, page), PROT_NONE, "addresses of the device memory"),
        window_(round_up(capacity, page), PROT_READ | PROT_WRITE, "bytes of the device memory") {
    ranges_.emplace(0, range{round_up(capacity, page).count, false});
  }

  [[nodiscard]] device_block allocate(bytes n) {
    if (n == bytes{}) return {};
    std::lock_guard const lock{mutex_};
    bytes const left = capacity_ - used_;
    if (n > left || round_up(n, granule) > left) {
      throw error{errc::capacity_exceeded,
                  {.where = "host_device allocate",
                   .wanted = n,
                   .got = left,
                   .detail = "device memory budget " + to_string(capacity_)}};
    }
    std::uint64_t const size = round_up(n, granule).count;
    std::uint64_t largest = 0;
    for (auto it = ranges_.begin(); it != ranges_.end(); ++it) {
      auto& [offset, found] = *it;
      if (found.live) continue;
      if (found.size < size) {
        largest = std::max(largest, found.size);
        continue;
      }
      if (found.size > size) {
        ranges_.emplace_hint(std::next(it), offset + size, range{found.size - size, false});
        found.size = size;
      }
      found.live = true;
      used_ += bytes{size};
      if (peak_ < used_) peak_ = used_;
      return {.data = addresses_.start() + offset, .size = n};
    }
    throw error{errc::capacity_exceeded,
                {.where = "host_device allocate",
                 .wanted = n,
                 .got = bytes{largest},
                 .detail = to_string(left) + " of the device memory are free, but not in one piece"}};
  }

  void deallocate(device_block block) noexcept {
    if (block.data == nullptr) return;
    std::lock_guard const lock{mutex_};
    auto it = ranges_.find(offset_of(block.data));
    SPILLWAY_EXPECTS(it != ranges_.end() && it->second.live && it->second.size == round_up(block.size, granule).count);
    it->second.live = false;
    used_ -= bytes{it->second.size};
    if (auto const next = std::next(it); next != ranges_.end() && !next->second.live) {
      it->second.size += next->second.size;
      ranges_.erase(next);
    }
    if (it != ranges_.begin()) {
      if (auto const previous = std::prev(it); !previous->second.live) {
        previous->second.size += it->second.size;
        ranges_.erase(it);
        it = previous;
      }
    }
    give_back_pages(it->first, it->second.size);
  }

  /// Where the bytes of [address, address + size) are. Pre: size > 0, and all of it lies in one live block.
  [[nodiscard]] std::byte* window(std::byte const* address, std::uint64_t size) {
    std::uint64_t const offset = offset_of(address);
    std::lock_guard const lock{mutex_};
    auto it = ranges_.upper_bound(offset);
    SPILLWAY_EXPECTS(it != ranges_.begin());
    --it;
    SPILLWAY_EXPECTS(it->second.live && offset - it->first < it->second.size);
    SPILLWAY_EXPECTS(size <= it->second.size - (offset - it->first));
    return window_.start() + offset;
  }

  [[nodiscard]] bytes capacity() const noexcept { return capacity_; }
  [[nodiscard]] bytes used() const noexcept {
    std::lock_guard const lock{mutex_};
    return used_;
  }
  [[nodiscard]] bytes peak() const noexcept {
    std::lock_guard const lock{mutex_};
    return peak_;
  }

 private:
  struct range {
    std::uint64_t size;
    bool live;
  };

  // An address below the start wraps to an offset that no range has.
  [[nodiscard]] std::uint64_t offset_of(std::byte const* address) const noexcept {
    return reinterpret_cast<std::uintptr_t>(address) - reinterpret_cast<std::uintptr_t>(addresses_.start());
  }
  // Whole pages of a free range. So the host holds no more memory than the device's blocks, and a block starts as zeros or as
  // what its neighbours' pages held.
  void give_back_pages(std::uint64_t offset, std::uint64_t size) noexcept {
    std::uint64_t const first = round_up(offset, page.count);
    std::uint64_t const last = (offset + size) / page.count * page.count;
    if (first < last) ::madvise(window_.start() + first, last - first, MADV_DONTNEED);
  }

  bytes capacity_;
  address_range addresses_;
  address_range window_;
  std::mutex mutable mutex_;
  std::map<std::uint64_t, range> ranges_;  // by offset; covers everything; no two free ones are neighbours
  bytes used_{}, peak_{};
};

}  // namespace spillway::inline v0::detail
