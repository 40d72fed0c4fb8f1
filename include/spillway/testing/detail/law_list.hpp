// SPDX-License-Identifier: Apache-2.0
/// What the conformance checks of tiers and engines share.
#pragma once

#include <spillway/core/transfer_concept.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace spillway::inline v0::testing::detail {

/// Collects broken laws; what a check throws is one too.
class law_list {
 public:
  template <class Check>
  void law(std::string name, Check check) {
    name_ = std::move(name);
    try {
      check();
    } catch (std::exception const& thrown) {
      expect(false, std::string("threw: ") + thrown.what());
    }
  }
  void expect(bool held, std::string const& what) {
    if (!held) broken_.push_back(name_ + ": " + what);
  }
  [[nodiscard]] std::vector<std::string> take() { return std::move(broken_); }

 private:
  std::string name_;
  std::vector<std::string> broken_;
};

/// Bytes that differ at every position and for every seed, so that a piece in the wrong place shows.
inline void fill_pattern(std::span<std::byte> to, std::uint64_t seed) noexcept {
  std::uint64_t x = seed * 0x9E3779B97F4A7C15U + 0x123456789ABCDEFU;
  for (std::byte& b : to) {
    x = x * 6364136223846793005U + 1442695040888963407U;
    b = static_cast<std::byte>(x >> 56U);
  }
}

/// False when poll() has not become true in 30 s.
template <Transfer Token>
[[nodiscard]] bool poll_until_done(Token& token) {
  auto const deadline = std::chrono::steady_clock::now() + std::chrono::seconds{30};
  while (!token.poll()) {
    if (std::chrono::steady_clock::now() > deadline) return false;
    std::this_thread::yield();
  }
  return true;
}

}  // namespace spillway::inline v0::testing::detail
