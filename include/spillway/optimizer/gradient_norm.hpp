// SPDX-License-Identifier: Apache-2.0
/// The sum of squares and the count of non-finite values of gradients: the same bits in any order of blocks, threads and ranks.
#pragma once

#include <spillway/core/exact_arithmetic.hpp>
#include <spillway/core/exact_sum.hpp>
#include <spillway/core/lanes.hpp>
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
  void add(float const* v) noexcept {
    for (unsigned i = 0; i < 16; ++i) {
      double const x = v[i];
      sums_[i] = opaque(sums_[i] + x * x);
    }
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
  detail::square_lanes squares;
  std::uint64_t bad = 0;
  float values[lanes::width];
  std::uint64_t i = 0;
  auto const take = [&] {
    for (float& v : values) {
      bool const finite = (std::bit_cast<std::uint32_t>(v) & 0x7f800000U) != 0x7f800000U;
      bad += finite ? 0U : 1U;
    }
    squares.add(values);
  };
  for (; i + lanes::width <= count; i += lanes::width) {
    lanes::load(gradient + i).store(values);
    take();
  }
  if (i < count) {
    for (std::uint64_t j = 0; j < lanes::width; ++j) values[j] = i + j < count ? widen(gradient[i + j]) : 0.0F;
    take();
  }
  sum.non_finite += bad;
  if (bad == 0) sum.squares.add(squares.total());
}

/// The factor that brings a gradient of `norm` down to `max_norm`: at most 1. max_norm <= 0: no clipping.
/// Source  torch.nn.utils.clip_grad_norm_.
[[nodiscard]] inline double clip_factor(double norm, double max_norm) noexcept {
  if (!(max_norm > 0)) return 1.0;
  double const factor = (f64{max_norm} / (f64{norm} + 1e-6)).value;
  return factor < 1.0 ? factor : 1.0;
}

}  // namespace spillway::inline v0
