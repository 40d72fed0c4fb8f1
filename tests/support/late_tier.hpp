// SPDX-License-Identifier: Apache-2.0
/// A tier whose transfers take a while and move their bytes at the very end, for tests: who reads too early or reuses a buffer too
/// early gets wrong bytes, every time.
#pragma once

#include <spillway/tier/host_tier.hpp>

#include <chrono>
#include <cstddef>
#include <cstring>
#include <memory>
#include <span>
#include <system_error>
#include <thread>
#include <utility>

namespace test {

class late_tier {
 public:
  static constexpr spillway::tier_traits traits{};
  using clock = std::chrono::steady_clock;

  class token {
   public:
    token() noexcept = default;
    token(std::byte* to, std::byte const* from, std::size_t size, clock::duration delay) noexcept
        : to_(to), from_(from), size_(size), due_(clock::now() + delay) {}
    token(token&& other) noexcept
        : to_(std::exchange(other.to_, nullptr)), from_(other.from_), size_(other.size_), due_(other.due_) {}
    token& operator=(token&& other) noexcept {
      wait();
      to_ = std::exchange(other.to_, nullptr), from_ = other.from_, size_ = other.size_, due_ = other.due_;
      return *this;
    }
    ~token() { wait(); }
    [[nodiscard]] bool poll() noexcept {
      if (to_ != nullptr && clock::now() >= due_) std::memcpy(std::exchange(to_, nullptr), from_, size_);
      return to_ == nullptr;
    }
    void wait() noexcept {
      if (to_ == nullptr) return;
      std::this_thread::sleep_until(due_);
      while (!poll()) {
      }
    }
    [[nodiscard]] static std::error_code status() noexcept { return {}; }

   private:
    std::byte* to_ = nullptr;
    std::byte const* from_ = nullptr;
    std::size_t size_ = 0;
    clock::time_point due_{};
  };

  late_tier(spillway::bytes capacity, clock::duration delay) : inner_(capacity), delay_(delay) {}
  [[nodiscard]] spillway::region allocate(spillway::bytes n) { return inner_.allocate(n); }
  void deallocate(spillway::region r) noexcept { inner_.deallocate(r); }
  [[nodiscard]] token read(spillway::region r, spillway::bytes offset, std::span<std::byte> to) {
    return to.empty() ? token{} : token{to.data(), spillway::host_tier::data(r) + offset.count, to.size(), delay_};
  }
  [[nodiscard]] token write(spillway::region r, spillway::bytes offset, std::span<std::byte const> from) {
    return from.empty() ? token{}
                        : token{spillway::host_tier::data(r) + offset.count, from.data(), from.size(), delay_};
  }
  [[nodiscard]] static spillway::completed flush() noexcept { return {}; }
  [[nodiscard]] spillway::bytes capacity() const noexcept { return inner_.capacity(); }

 private:
  spillway::host_tier inner_;
  clock::duration delay_;
};
static_assert(spillway::MemoryTier<late_tier>);

}  // namespace test
