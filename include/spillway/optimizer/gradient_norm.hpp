// SPDX-License-Identifier: Apache-2.0
/// The sum of squares and the count of non-finite values of gradients: the same bits in any order of blocks, threads and ranks.
#pragma once

#include <spillway/core/bf16.hpp>
#include <spillway/core/exact_arithmetic.hpp>
#include <spillway/core/exact_sum.hpp>
#include <spillway/layout/parameter_layout.hpp>

#include <bit>
#include <cstdint>

namespace spillway::inline v0 {

/// What is known of some gradients. Combine with +=.
struct gradient_sum {
  exact_sum squares{};           ///< of the blocks whose elements are all finite
  std::uint64_t non_finite = 0;  ///< elements that are infinite or NaN

  gradient_sum& operator+=(gradient_sum const& other) noexcept {
    squares += other.squares;
    non_finite += other.non_finite;
    return *this;
  }
};

namespace detail {
// Sixteen accumulators in a fixed order, then a fixed tree. An fp32 square is exact in double, so only additions round.
class square_lanes {
 public:
  static constexpr std::uint64_t width = 16;
  void add(float const (&v)[width]) noexcept {
    for (unsigned i = 0; i < width; ++i) {
      double const x = v[i];
      sums_[i] += x * x;
    }
    asm("" : "+m"(sums_));  // no reassociation; one value at a time would keep the loop from being vectorised
  }
  [[nodiscard]] double total() noexcept {
    for (unsigned half = 8; half > 0; half /= 2) {
      for (unsigned i = 0; i < half; ++i) sums_[i] = opaque(sums_[i] + sums_[i + half]);
    }
    return sums_[0];
  }

 private:
  double sums_[16]{};
};
}  // namespace detail

/// Add one block of one tensor: `count` <= 1024 elements in their narrow type.
template <class T>
void add_block(gradient_sum& sum, T const* gradient, std::uint64_t count) noexcept {
  constexpr std::uint64_t width = detail::square_lanes::width;
  constexpr std::uint32_t exponent = 0x7f800000U;  // all of it set: infinite or NaN
  detail::square_lanes squares;
  std::uint32_t carried[width]{};  // the top bit: an exponent was all ones
  float values[width];
  auto const take = [&] {
    for (unsigned i = 0; i < width; ++i)
      carried[i] |= (std::bit_cast<std::uint32_t>(values[i]) & exponent) + 0x00800000U;
    squares.add(values);
  };
  std::uint64_t i = 0;
  for (; i + width <= count; i += width) {
    for (std::uint64_t j = 0; j < width; ++j) values[j] = widen(gradient[i + j]);
    take();
  }
  if (i < count) {
    for (std::uint64_t j = 0; j < width; ++j) values[j] = i + j < count ? widen(gradient[i + j]) : 0.0F;
    take();
  }
  std::uint32_t any = 0;
  for (std::uint32_t const c : carried) any |= c;
  if ((any >> 31U) == 0) {
    sum.squares.add(squares.total());
    return;
  }
  for (i = 0; i < count; ++i) {
    sum.non_finite += (std::bit_cast<std::uint32_t>(widen(gradient[i])) & exponent) == exponent ? 1U : 0U;
  }
}

/// The factor that brings a gradient of `norm` down to `max_norm`: at most 1. max_norm <= 0: no clipping.
/// Source  torch.nn.utils.clip_grad_norm_.
[[nodiscard]] inline double clip_factor(double norm, double max_norm) noexcept {
  if (!(max_norm > 0)) return 1.0;
  double const factor = (f64{max_norm} / (f64{norm} + 1e-6)).value;
  return factor < 1.0 ? factor : 1.0;
}

}  // namespace spillway::inline v0
