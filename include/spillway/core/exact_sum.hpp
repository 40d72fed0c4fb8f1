// SPDX-License-Identifier: Apache-2.0
/// A sum of doubles whose result does not depend on the order: a fixed-point number as wide as the whole double range.
#pragma once

#include <spillway/core/config.hpp>

#include <array>
#include <bit>
#include <cstdint>

namespace spillway::inline v0 {

/// Adds finite doubles exactly, in any order and grouping; ranks combine theirs by adding digits().
/// Capacity  2^30 additions between two calls of value(), operator+= or digits(), each of which carries.
/// Threads   one thread an object.
class exact_sum {
 public:
  static constexpr std::size_t digit_count = 70;  ///< 32 bits each, of weight 2^(32 i - 1074), with 2 for carries

  /// Pre: `x` is finite.
  void add(double x) noexcept {
    auto const u = std::bit_cast<std::uint64_t>(x);
    std::uint64_t const exponent = (u >> 52U) & 0x7ffU;
    std::uint64_t const mantissa = (u & 0xfffffffffffffU) | (exponent != 0 ? std::uint64_t{1} << 52U : 0);
    std::uint64_t const shift = exponent != 0 ? exponent - 1 : 0;  // mantissa x 2^(shift - 1074)
    std::size_t const digit = shift / 32;
    unsigned const offset = static_cast<unsigned>(shift % 32);
    std::uint64_t const low = mantissa << offset;
    std::uint64_t const high = offset == 0 ? 0 : mantissa >> (64U - offset);
    std::int64_t const sign = (u >> 63U) != 0 ? -1 : 1;
    digits_[digit] += sign * static_cast<std::int64_t>(low & 0xffffffffU);
    digits_[digit + 1] += sign * static_cast<std::int64_t>(low >> 32U);
    digits_[digit + 2] += sign * static_cast<std::int64_t>(high);
  }
  exact_sum& operator+=(exact_sum const& other) noexcept {
    exact_sum carried = other;
    carried.carry();
    carry();
    for (std::size_t i = 0; i < digit_count; ++i) digits_[i] += carried.digits_[i];
    return *this;
  }
  /// The digits, carried, for an integer all-reduce: sums of them over up to 2^30 ranks are again digits.
  [[nodiscard]] std::array<std::int64_t, digit_count>& digits() noexcept {
    carry();
    return digits_;
  }
  /// The sum, rounded once to nearest, ties to even. Overflow gives infinity.
  [[nodiscard]] double value() const noexcept {
    exact_sum x = *this;
    x.carry();
    bool const negative = x.digits_.back() < 0;
    if (negative) {
      for (auto& d : x.digits_) d = -d;
      x.carry();
    }
    std::size_t top = digit_count;
    while (top > 0 && x.digits_[top - 1] == 0) --top;
    if (top == 0) return 0.0;
    // The top 96 bits, normalised to 64 with a sticky bit, then rounded by hand: the integer path is immune to float flags.
    auto const at = [&x](std::size_t i) { return static_cast<std::uint64_t>(x.digits_[i]); };
    unsigned __int128 bits = at(top - 1);
    std::size_t used = 1;
    while (used < 3 && used < top) bits = (bits << 32U) | at(top - 1 - used++);
    bool sticky = false;
    for (std::size_t i = 0; i < top - used; ++i) sticky = sticky || x.digits_[i] != 0;
    auto exponent = static_cast<std::int64_t>(32 * (top - used)) - 1074;  // value = bits x 2^exponent
    while ((bits >> 64U) != 0) {
      sticky = sticky || (bits & 1U) != 0;
      bits >>= 1U;
      ++exponent;
    }
    return assemble(static_cast<std::uint64_t>(bits), exponent, sticky, negative);
  }

 private:
  static double assemble(std::uint64_t m, std::int64_t exponent, bool sticky, bool negative) noexcept {
    while (m >= (std::uint64_t{1} << 54U)) {
      sticky = sticky || (m & 1U) != 0;
      m >>= 1U;
      ++exponent;
    }
    // Here m < 2^54. One bit below the last place decides, sticky breaks the tie; denormals keep their fixed exponent.
    if (m >= (std::uint64_t{1} << 53U)) {
      bool const half = (m & 1U) != 0;
      m >>= 1U;
      ++exponent;
      if (half && (sticky || (m & 1U) != 0)) ++m;
      if (m == (std::uint64_t{1} << 53U)) {
        m >>= 1U;
        ++exponent;
      }
    }
    while (m < (std::uint64_t{1} << 52U) && exponent > -1074) {
      m <<= 1U;
      --exponent;
    }
    std::uint64_t const biased = m >= (std::uint64_t{1} << 52U) ? static_cast<std::uint64_t>(exponent + 1075) : 0;
    std::uint64_t const sign = static_cast<std::uint64_t>(negative) << 63U;
    if (biased >= 0x7ffU) return std::bit_cast<double>(sign | 0x7ff0000000000000U);
    return std::bit_cast<double>(sign | (biased << 52U) | (m & 0xfffffffffffffU));
  }
  void carry() noexcept {
    std::int64_t carried = 0;
    for (std::size_t i = 0; i + 1 < digit_count; ++i) {
      std::int64_t const d = digits_[i] + carried;
      digits_[i] = d & 0xffffffff;
      carried = (d - digits_[i]) / (std::int64_t{1} << 32U);
    }
    digits_.back() += carried;
  }
  std::array<std::int64_t, digit_count> digits_{};
};

}  // namespace spillway::inline v0
