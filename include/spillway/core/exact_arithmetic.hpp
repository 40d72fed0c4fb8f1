// SPDX-License-Identifier: Apache-2.0
/// Arithmetic whose bits do not depend on the flags of whoever includes it: no contraction, no flush to zero, no reassociation.
/// The traps behind each line: https://gcc.gnu.org/wiki/FloatingPointMath, and optimizer/README.md.
#pragma once

#include <spillway/core/config.hpp>

#include <cstdint>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace spillway::inline v0 {

#if defined(__FLT_EVAL_METHOD__)
static_assert(__FLT_EVAL_METHOD__ == 0,
              "x87 arithmetic keeps other bits than the contract promises: compile with SSE2");
#endif

namespace detail {
/// The value, through a register that no optimisation sees through.
template <class T>
[[nodiscard]] SPILLWAY_ALWAYS_INLINE T opaque(T value) noexcept {
#if defined(__x86_64__)
  asm("" : "+x"(value));
#elif defined(__aarch64__)
  asm("" : "+w"(value));
#else
  T volatile kept = value;
  value = kept;
#endif
  return value;
}
}  // namespace detail

/// An fp64 for the few scalars of a step (bias corrections, clip factor): every operation is rounded by itself whatever the flags.
struct f64 {
  double value = 0;
  constexpr f64() noexcept = default;
  constexpr f64(double v) noexcept : value(v) {}  // NOLINT(google-explicit-constructor): literals in formulas
  friend f64 operator+(f64 a, f64 b) noexcept {
    return detail::opaque(detail::opaque(a.value) + detail::opaque(b.value));
  }
  friend f64 operator-(f64 a, f64 b) noexcept {
    return detail::opaque(detail::opaque(a.value) - detail::opaque(b.value));
  }
  friend f64 operator*(f64 a, f64 b) noexcept {
    return detail::opaque(detail::opaque(a.value) * detail::opaque(b.value));
  }
  friend f64 operator/(f64 a, f64 b) noexcept {
    return detail::opaque(detail::opaque(a.value) / detail::opaque(b.value));
  }
  [[nodiscard]] float narrowed() const noexcept { return detail::opaque(static_cast<float>(detail::opaque(value))); }
};

/// Correctly rounded.
[[nodiscard]] inline f64 sqrt(f64 x) noexcept {
#if defined(__x86_64__)
  double root = x.value;
  asm("sqrtsd %0, %0" : "+x"(root));  // an intrinsic would be replaced under -ffast-math
  return root;
#else
  return detail::opaque(__builtin_sqrt(x.value));
#endif
}

/// base^exponent by repeated squaring: glibc's pow differs between machines with and without FMA.
[[nodiscard]] inline f64 power(f64 base, std::uint64_t exponent) noexcept {
  f64 result = 1.0;
  for (f64 square = base; exponent != 0; exponent >>= 1U) {
    if ((exponent & 1U) != 0) result = result * square;
    square = square * square;
  }
  return result;
}

/// Round to nearest, denormals kept, for the lifetime of the object: a program linked with -ffast-math starts its threads with
/// flush-to-zero on.
class float_environment {
 public:
#if defined(__x86_64__)
  float_environment() noexcept : saved_(_mm_getcsr()) {
    _mm_setcsr(0x1f80U);
    asm volatile("" : : : "memory");  // no load, and so no arithmetic on it, moves up across the change
  }
  ~float_environment() {
    asm volatile("" : : : "memory");
    _mm_setcsr(saved_);
  }
#else
  float_environment() noexcept = default;
  ~float_environment() {}
#endif
  float_environment(float_environment const&) = delete;
  float_environment& operator=(float_environment const&) = delete;

 private:
  [[maybe_unused]] unsigned saved_ = 0;
};

}  // namespace spillway::inline v0
