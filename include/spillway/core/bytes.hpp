// SPDX-License-Identifier: Apache-2.0
/// Byte counts as a type of their own, so that elements and bytes can't be mixed up, and checked 64-bit arithmetic.
#pragma once

#include <spillway/core/config.hpp>

#include <compare>
#include <cstdint>
#include <cstdio>
#include <string>

namespace spillway::inline v0 {

/// A number of bytes.
struct bytes {
  std::uint64_t count = 0;

  constexpr bytes() noexcept = default;
  constexpr explicit bytes(std::uint64_t n) noexcept : count(n) {}

  constexpr bytes& operator+=(bytes other) noexcept {
    count += other.count;
    return *this;
  }
  constexpr bytes& operator-=(bytes other) noexcept {
    count -= other.count;
    return *this;
  }
  friend constexpr bytes operator+(bytes a, bytes b) noexcept { return bytes{a.count + b.count}; }
  friend constexpr bytes operator-(bytes a, bytes b) noexcept { return bytes{a.count - b.count}; }
  friend constexpr bytes operator*(bytes a, std::uint64_t n) noexcept { return bytes{a.count * n}; }
  friend constexpr bytes operator*(std::uint64_t n, bytes a) noexcept { return bytes{a.count * n}; }
  friend constexpr bool operator==(bytes, bytes) noexcept = default;
  friend constexpr auto operator<=>(bytes, bytes) noexcept = default;
};

inline namespace literals {
[[nodiscard]] constexpr bytes operator""_B(unsigned long long n) noexcept { return bytes{n}; }
[[nodiscard]] constexpr bytes operator""_KiB(unsigned long long n) noexcept { return bytes{n << 10U}; }
[[nodiscard]] constexpr bytes operator""_MiB(unsigned long long n) noexcept { return bytes{n << 20U}; }
[[nodiscard]] constexpr bytes operator""_GiB(unsigned long long n) noexcept { return bytes{n << 30U}; }
}  // namespace literals

/// `n` rounded up to a multiple of `quantum`. Pre: quantum > 0 and the result fits 64 bits.
[[nodiscard]] constexpr std::uint64_t round_up(std::uint64_t n, std::uint64_t quantum) noexcept {
  return (n + quantum - 1) / quantum * quantum;
}
[[nodiscard]] constexpr bytes round_up(bytes n, bytes quantum) noexcept {
  return bytes{round_up(n.count, quantum.count)};
}

/// a x b into `out`; false when it does not fit 64 bits, and then `out` is unspecified.
[[nodiscard]] constexpr bool checked_multiply(std::uint64_t a, std::uint64_t b, std::uint64_t& out) noexcept {
  return !__builtin_mul_overflow(a, b, &out);
}
/// a + b into `out`; false when it does not fit 64 bits, and then `out` is unspecified.
[[nodiscard]] constexpr bool checked_add(std::uint64_t a, std::uint64_t b, std::uint64_t& out) noexcept {
  return !__builtin_add_overflow(a, b, &out);
}

/// For people: "512 B", "12.3 KiB", "1.50 GiB". Not for parsing.
[[nodiscard]] inline std::string to_string(bytes n) {
  constexpr char const* units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
  if (n.count < 1024) return std::to_string(n.count) + " B";
  auto value = static_cast<double>(n.count);
  unsigned unit = 0;
  while (value >= 1024 && unit < 5) {
    value /= 1024;
    ++unit;
  }
  char text[32];
  std::snprintf(text, sizeof text, value < 10 ? "%.2f %s" : "%.1f %s", value, units[unit]);
  return text;
}

}  // namespace spillway::inline v0
