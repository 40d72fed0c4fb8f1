// SPDX-License-Identifier: Apache-2.0
/// bfloat16 storage and the rounding rules that make one from an fp32 value.
#pragma once

#include <spillway/core/dtype.hpp>

#include <cstdint>
#include <string_view>

namespace spillway::inline v0 {

/// How an fp32 value becomes a bf16 parameter. Values are stable: files name the rule.
enum class rounding : std::uint8_t {
  nearest_even = 0,  ///< ties to even, as IEEE 754 and PyTorch
  nearest_away = 1,  ///< ties away from zero: the only rule under which 16 more bits hold the fp32 exactly
};
[[nodiscard]] constexpr std::string_view name_of(rounding rule) noexcept {
  return rule == rounding::nearest_even ? "nearest_even" : "nearest_away";
}

/// The upper half of an fp32. Storage only: arithmetic happens in fp32. Layout as CUDA's __nv_bfloat16 and PyTorch's bfloat16.
struct bf16 {
  std::uint16_t bits = 0;

  [[nodiscard]] SPILLWAY_HOST_DEVICE constexpr explicit operator float() const noexcept {
    return __builtin_bit_cast(float, static_cast<std::uint32_t>(bits) << 16U);  // nvcc refuses std::bit_cast here
  }
  friend constexpr bool operator==(bf16,
                                   bf16) noexcept = default;  ///< of the bits: -0 differs from 0, NaN equals itself
};

/// Narrow an fp32. NaN becomes the canonical quiet NaN 0x7fc0; overflow goes to infinity.
template <rounding Rule = rounding::nearest_even>
[[nodiscard]] SPILLWAY_HOST_DEVICE constexpr bf16 narrow(float value) noexcept {
  auto const u = __builtin_bit_cast(std::uint32_t, value);
  if ((u & 0x7fffffffU) > 0x7f800000U) return bf16{0x7fc0U};
  std::uint32_t const half = Rule == rounding::nearest_even ? 0x7fffU + ((u >> 16U) & 1U) : 0x8000U;
  // An infinity has a zero low half, so the addition never carries out of it.
  return bf16{static_cast<std::uint16_t>((u + half) >> 16U)};
}
/// Exact.
[[nodiscard]] SPILLWAY_HOST_DEVICE constexpr float widen(bf16 value) noexcept { return static_cast<float>(value); }
[[nodiscard]] SPILLWAY_HOST_DEVICE constexpr float widen(float value) noexcept { return value; }

}  // namespace spillway::inline v0
