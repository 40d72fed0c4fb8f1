// SPDX-License-Identifier: Apache-2.0
/// Floats as the bits that they are.
#pragma once

#include <bit>
#include <cstdint>

namespace test {
[[nodiscard]] inline std::uint32_t bits(float x) noexcept { return std::bit_cast<std::uint32_t>(x); }
[[nodiscard]] inline float float_of(std::uint32_t u) noexcept { return std::bit_cast<float>(u); }
[[nodiscard]] inline bool is_nan(float x) noexcept { return (bits(x) & 0x7fffffffU) > 0x7f800000U; }
}  // namespace test
