// SPDX-License-Identifier: Apache-2.0
/// One direction of the simulated accelerator's link: at most so many bytes a second, whoever copies.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <mutex>
#include <thread>

namespace spillway::inline v0::detail {

/// Threads  copies may run on any number of threads at once; they share the rate.
class host_device_link {
 public:
  using clock = std::chrono::steady_clock;

  /// 0 bytes a second: no limit.
  explicit host_device_link(double bytes_per_second) noexcept : bytes_per_second_(bytes_per_second) {}

  /// Copies, and returns when a link of this rate would be done with it. `ready` is when the copy could have begun; it is moved
  /// to when the link was done, so that a thread that wakes up late costs the link nothing.
  void copy(std::byte* to, std::byte const* from, std::uint64_t size, clock::time_point& ready) {
    if (bytes_per_second_ <= 0) {
      std::memcpy(to, from, size);
      ready = clock::now();
      return;
    }
    // In pieces, each at the time when it would arrive: the last bytes change late, as with a real copy engine, and copies of
    // several streams take turns.
    constexpr std::uint64_t piece = 1ULL << 18U;
    for (std::uint64_t done = 0; done < size; done += piece) {
      std::uint64_t const n = std::min(piece, size - done);
      ready = reserve(n, ready);
      std::this_thread::sleep_until(ready);
      std::memcpy(to + done, from + done, n);
    }
  }

 private:
  [[nodiscard]] clock::time_point reserve(std::uint64_t n, clock::time_point ready) {
    auto const takes = std::chrono::duration<double>(static_cast<double>(n) / bytes_per_second_);
    std::lock_guard const lock{mutex_};
    free_at_ = std::max(free_at_, ready) + std::chrono::duration_cast<clock::duration>(takes);
    return free_at_;
  }

  double bytes_per_second_;
  std::mutex mutex_;
  clock::time_point free_at_{};
};

}  // namespace spillway::inline v0::detail
