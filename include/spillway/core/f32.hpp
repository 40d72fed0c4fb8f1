// SPDX-License-Identifier: Apache-2.0
/// The value type of per-element update rules, one element wide: fp32 whose operators give the same bits under any compiler flag.
#pragma once

#include <spillway/core/bf16.hpp>
#include <spillway/core/config.hpp>
#include <spillway/core/exact_arithmetic.hpp>

#include <cstdint>

namespace spillway::inline v0 {

/// One fp32. Every operation is one IEEE rounding: the barriers keep compilers from contracting, reassociating and replacing
/// (g++ and clang under -ffast-math, -ffp-contract=fast; nvcc under -use_fast_math), which no pragma does for both.
struct f32 {
  static constexpr int width = 1;
  float value = 0;

  constexpr f32() noexcept = default;
  SPILLWAY_HOST_DEVICE constexpr explicit f32(float v) noexcept : value(v) {}

  [[nodiscard]] SPILLWAY_HOST_DEVICE static f32 load(float const* from) noexcept { return f32{*from}; }
  [[nodiscard]] SPILLWAY_HOST_DEVICE static f32 load(bf16 const* from) noexcept { return f32{widen(*from)}; }
  /// NaN is stored as the canonical 0x7fc00000: x86 and CUDA make others.
  SPILLWAY_HOST_DEVICE void store(float* to) const noexcept {
    auto const u = __builtin_bit_cast(std::uint32_t, value);
    *to = __builtin_bit_cast(float, (u & 0x7fffffffU) > 0x7f800000U ? 0x7fc00000U : u);
  }
  template <rounding Rule>
  SPILLWAY_HOST_DEVICE void store(bf16* to) const noexcept {
    *to = narrow<Rule>(value);
  }
  template <rounding Rule>
  SPILLWAY_HOST_DEVICE void store(float* to) const noexcept {
    store(to);
  }

#if defined(__CUDA_ARCH__)
  friend __device__ f32 operator+(f32 a, f32 b) noexcept {
    asm("add.rn.f32 %0, %1, %2;" : "=f"(a.value) : "f"(a.value), "f"(b.value));
    return a;
  }
  friend __device__ f32 operator-(f32 a, f32 b) noexcept {
    asm("sub.rn.f32 %0, %1, %2;" : "=f"(a.value) : "f"(a.value), "f"(b.value));
    return a;
  }
  friend __device__ f32 operator*(f32 a, f32 b) noexcept {
    asm("mul.rn.f32 %0, %1, %2;" : "=f"(a.value) : "f"(a.value), "f"(b.value));
    return a;
  }
  friend __device__ f32 operator/(f32 a, f32 b) noexcept {
    asm("div.rn.f32 %0, %1, %2;" : "=f"(a.value) : "f"(a.value), "f"(b.value));
    return a;
  }
  friend __device__ f32 sqrt(f32 a) noexcept {
    asm("sqrt.rn.f32 %0, %1;" : "=f"(a.value) : "f"(a.value));
    return a;
  }
  friend __device__ f32 max(f32 a, f32 b) noexcept {  // a plain comparison flushes denormals under -ftz=true
    asm("{ .reg .pred less; setp.lt.f32 less, %0, %1; selp.f32 %0, %1, %0, less; }" : "+f"(a.value) : "f"(b.value));
    return a;
  }
#else
  friend SPILLWAY_HOST_DEVICE f32 operator+(f32 a, f32 b) noexcept { return f32{detail::opaque(a.value + b.value)}; }
  friend SPILLWAY_HOST_DEVICE f32 operator-(f32 a, f32 b) noexcept { return f32{detail::opaque(a.value - b.value)}; }
  friend SPILLWAY_HOST_DEVICE f32 operator*(f32 a, f32 b) noexcept { return f32{detail::opaque(a.value * b.value)}; }
#if defined(__x86_64__)
  friend SPILLWAY_HOST_DEVICE f32 operator/(f32 a, f32 b) noexcept {
    asm("divss %1, %0" : "+x"(a.value) : "x"(b.value));
    return a;
  }
  friend SPILLWAY_HOST_DEVICE f32 sqrt(f32 a) noexcept {
    asm("sqrtss %0, %0" : "+x"(a.value));
    return a;
  }
#else
  friend f32 operator/(f32 a, f32 b) noexcept { return f32{detail::opaque(a.value / detail::opaque(b.value))}; }
  friend f32 sqrt(f32 a) noexcept { return f32{detail::opaque(__builtin_sqrtf(a.value))}; }
#endif
  /// b where a < b, else a: the same choice for NaN on every machine.
  friend SPILLWAY_HOST_DEVICE f32 max(f32 a, f32 b) noexcept { return a.value < b.value ? b : a; }
#endif
};

}  // namespace spillway::inline v0
