// SPDX-License-Identifier: Apache-2.0
/// The value type of per-element update rules, sixteen elements wide. Same operators and same bits as f32.
#pragma once

#include <spillway/core/f32.hpp>

#include <cstdint>
#include <cstring>

namespace spillway::inline v0 {

#if defined(__x86_64__)

/// Sixteen fp32 in four SSE registers: the baseline of x86-64, so a user's update rule needs no compiler flag and no dispatch.
/// Four named members, not an array: g++ -O2 keeps an array in memory, which costs a factor of three.
class lanes {
 public:
  static constexpr int width = 16;

  lanes() noexcept = default;
  SPILLWAY_ALWAYS_INLINE explicit lanes(float x) noexcept : a_(_mm_set1_ps(x)), b_(a_), c_(a_), d_(a_) {}

  [[nodiscard]] SPILLWAY_ALWAYS_INLINE static lanes load(float const* from) noexcept {
    return {_mm_loadu_ps(from), _mm_loadu_ps(from + 4), _mm_loadu_ps(from + 8), _mm_loadu_ps(from + 12)};
  }
  [[nodiscard]] SPILLWAY_ALWAYS_INLINE static lanes load(bf16 const* from) noexcept {
    __m128i const zero = _mm_setzero_si128();
    __m128i low;
    __m128i high;
    std::memcpy(&low, from, sizeof low);
    std::memcpy(&high, from + 8, sizeof high);
    return {_mm_castsi128_ps(_mm_unpacklo_epi16(zero, low)), _mm_castsi128_ps(_mm_unpackhi_epi16(zero, low)),
            _mm_castsi128_ps(_mm_unpacklo_epi16(zero, high)), _mm_castsi128_ps(_mm_unpackhi_epi16(zero, high))};
  }
  SPILLWAY_ALWAYS_INLINE void store(float* to) const noexcept {
    _mm_storeu_ps(to, canonical(a_));
    _mm_storeu_ps(to + 4, canonical(b_));
    _mm_storeu_ps(to + 8, canonical(c_));
    _mm_storeu_ps(to + 12, canonical(d_));
  }
  template <rounding Rule>
  SPILLWAY_ALWAYS_INLINE void store(bf16* to) const noexcept {
    __m128i const low = _mm_packs_epi32(narrowed<Rule>(a_), narrowed<Rule>(b_));
    __m128i const high = _mm_packs_epi32(narrowed<Rule>(c_), narrowed<Rule>(d_));
    std::memcpy(static_cast<void*>(to), &low, sizeof low);
    std::memcpy(static_cast<void*>(to + 8), &high, sizeof high);
  }
  template <rounding Rule>
  SPILLWAY_ALWAYS_INLINE void store(float* to) const noexcept {
    store(to);
  }

  SPILLWAY_ALWAYS_INLINE friend lanes operator+(lanes const& x, lanes const& y) noexcept {
    return {kept(_mm_add_ps(x.a_, y.a_)), kept(_mm_add_ps(x.b_, y.b_)), kept(_mm_add_ps(x.c_, y.c_)),
            kept(_mm_add_ps(x.d_, y.d_))};
  }
  SPILLWAY_ALWAYS_INLINE friend lanes operator-(lanes const& x, lanes const& y) noexcept {
    return {kept(_mm_sub_ps(x.a_, y.a_)), kept(_mm_sub_ps(x.b_, y.b_)), kept(_mm_sub_ps(x.c_, y.c_)),
            kept(_mm_sub_ps(x.d_, y.d_))};
  }
  SPILLWAY_ALWAYS_INLINE friend lanes operator*(lanes const& x, lanes const& y) noexcept {
    return {kept(_mm_mul_ps(x.a_, y.a_)), kept(_mm_mul_ps(x.b_, y.b_)), kept(_mm_mul_ps(x.c_, y.c_)),
            kept(_mm_mul_ps(x.d_, y.d_))};
  }
  SPILLWAY_ALWAYS_INLINE friend lanes operator/(lanes const& x, lanes const& y) noexcept {
    return {quotient(x.a_, y.a_), quotient(x.b_, y.b_), quotient(x.c_, y.c_), quotient(x.d_, y.d_)};
  }
  SPILLWAY_ALWAYS_INLINE friend lanes sqrt(lanes const& x) noexcept {
    return {root(x.a_), root(x.b_), root(x.c_), root(x.d_)};
  }
  /// y where x < y, else x. maxps returns its second operand unless the first is greater: max(y, x).
  SPILLWAY_ALWAYS_INLINE friend lanes max(lanes const& x, lanes const& y) noexcept {
    return {kept(_mm_max_ps(y.a_, x.a_)), kept(_mm_max_ps(y.b_, x.b_)), kept(_mm_max_ps(y.c_, x.c_)),
            kept(_mm_max_ps(y.d_, x.d_))};
  }

 private:
  SPILLWAY_ALWAYS_INLINE lanes(__m128 a, __m128 b, __m128 c, __m128 d) noexcept : a_(a), b_(b), c_(c), d_(d) {}
  // A value through here can't be contracted into or reassociated with its neighbours.
  SPILLWAY_ALWAYS_INLINE static __m128 kept(__m128 x) noexcept {
    asm("" : "+x"(x));
    return x;
  }
  // Not the intrinsics: -ffast-math turns those into reciprocal estimates. The VEX form where the rest of the loop is VEX.
  SPILLWAY_ALWAYS_INLINE static __m128 quotient(__m128 x, __m128 y) noexcept {
#if defined(__AVX__)
    asm("vdivps %1, %0, %0" : "+x"(x) : "x"(y));
#else
    asm("divps %1, %0" : "+x"(x) : "x"(y));
#endif
    return x;
  }
  SPILLWAY_ALWAYS_INLINE static __m128 root(__m128 x) noexcept {
#if defined(__AVX__)
    asm("vsqrtps %0, %0" : "+x"(x));
#else
    asm("sqrtps %0, %0" : "+x"(x));
#endif
    return x;
  }
  // Integer compares: a floating one may be folded away under -ffinite-math-only.
  SPILLWAY_ALWAYS_INLINE static __m128i is_nan(__m128i u) noexcept {
    return _mm_cmpgt_epi32(_mm_and_si128(u, _mm_set1_epi32(0x7fffffff)), _mm_set1_epi32(0x7f800000));
  }
  SPILLWAY_ALWAYS_INLINE static __m128i choose(__m128i where, __m128i yes, __m128i no) noexcept {
    return _mm_or_si128(_mm_and_si128(where, yes), _mm_andnot_si128(where, no));
  }
  SPILLWAY_ALWAYS_INLINE static __m128 canonical(__m128 x) noexcept {
    __m128i const u = _mm_castps_si128(x);
    return _mm_castsi128_ps(choose(is_nan(u), _mm_set1_epi32(0x7fc00000), u));
  }
  template <rounding Rule>
  SPILLWAY_ALWAYS_INLINE static __m128i narrowed(__m128 x) noexcept {
    __m128i const u = _mm_castps_si128(x);
    __m128i half = _mm_set1_epi32(0x8000);
    if constexpr (Rule == rounding::nearest_even) {
      half = _mm_add_epi32(_mm_and_si128(_mm_srli_epi32(u, 16), _mm_set1_epi32(1)), _mm_set1_epi32(0x7fff));
    }
    // An arithmetic shift, since packing saturates signed values: what is left is in range.
    return choose(is_nan(u), _mm_set1_epi32(0x7fc0), _mm_srai_epi32(_mm_add_epi32(u, half), 16));
  }

  __m128 a_, b_, c_, d_;
};

#else

/// Sixteen fp32, one after the other, where there is no SIMD form yet.
class lanes {
 public:
  static constexpr int width = 16;

  lanes() noexcept = default;
  explicit lanes(float x) noexcept {
    for (f32& v : v_) v = f32{x};
  }
  template <class T>
  [[nodiscard]] static lanes load(T const* from) noexcept {
    lanes out;
    for (int i = 0; i < width; ++i) out.v_[i] = f32::load(from + i);
    return out;
  }
  void store(float* to) const noexcept {
    for (int i = 0; i < width; ++i) v_[i].store(to + i);
  }
  template <rounding Rule, class T>
  void store(T* to) const noexcept {
    for (int i = 0; i < width; ++i) v_[i].template store<Rule>(to + i);
  }
  friend lanes operator+(lanes const& x, lanes const& y) noexcept {
    return each(x, y, [](f32 a, f32 b) { return a + b; });
  }
  friend lanes operator-(lanes const& x, lanes const& y) noexcept {
    return each(x, y, [](f32 a, f32 b) { return a - b; });
  }
  friend lanes operator*(lanes const& x, lanes const& y) noexcept {
    return each(x, y, [](f32 a, f32 b) { return a * b; });
  }
  friend lanes operator/(lanes const& x, lanes const& y) noexcept {
    return each(x, y, [](f32 a, f32 b) { return a / b; });
  }
  friend lanes sqrt(lanes const& x) noexcept {
    return each(x, x, [](f32 a, f32) { return sqrt(a); });
  }
  friend lanes max(lanes const& x, lanes const& y) noexcept {
    return each(x, y, [](f32 a, f32 b) { return max(a, b); });
  }

 private:
  template <class F>
  static lanes each(lanes const& x, lanes const& y, F f) noexcept {
    lanes out;
    for (int i = 0; i < width; ++i) out.v_[i] = f(x.v_[i], y.v_[i]);
    return out;
  }
  f32 v_[width];
};

#endif

}  // namespace spillway::inline v0
