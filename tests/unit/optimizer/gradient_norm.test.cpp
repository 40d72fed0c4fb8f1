// SPDX-License-Identifier: Apache-2.0
#include <spillway/optimizer/gradient_norm.hpp>

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "support/catch.hpp"
#include "support/float_bits.hpp"
#include "support/training_run.hpp"

using spillway::bf16;
using spillway::clip_factor;
using spillway::gradient_sum;
using test::recorded;

namespace {
template <class T>
gradient_sum blocks_of(std::vector<T> const& values, bool backwards = false) {
  gradient_sum sum;
  std::size_t const blocks = (values.size() + 1023) / 1024;
  for (std::size_t i = 0; i < blocks; ++i) {
    std::size_t const b = backwards ? blocks - 1 - i : i;
    add_block(sum, &values[b * 1024], std::min<std::size_t>(1024, values.size() - b * 1024));
  }
  return sum;
}
std::uint64_t bits(gradient_sum const& sum) { return std::bit_cast<std::uint64_t>(sum.squares.value()); }
}  // namespace

TEST_CASE("gradient_norm: the sum of squares equals a long double one, for any size") {
  for (std::size_t const n : {1U, 15U, 16U, 17U, 1023U, 1024U, 1025U, 50000U}) {
    std::vector<float> values(n);
    long double wanted = 0;
    for (std::size_t e = 0; e < n; ++e) {
      values[e] = recorded(3, e) * 1.0001F;
      wanted += static_cast<long double>(values[e]) * static_cast<long double>(values[e]);
    }
    auto const sum = blocks_of(values);
    CHECK(std::abs(sum.squares.value() / static_cast<double>(wanted) - 1) < 1e-14);
    CHECK(sum.non_finite == 0);
  }
}

TEST_CASE("gradient_norm: blocks in any order, and joined in any grouping, give the same bits") {
  std::vector<float> values(300000);
  for (std::size_t e = 0; e < values.size(); ++e)
    values[e] = std::ldexp(recorded(5, e), static_cast<int>(e / 1024 % 80) - 40);
  auto const forward = blocks_of(values);
  CHECK(bits(blocks_of(values, true)) == bits(forward));
  gradient_sum parts[3];
  for (std::size_t b = 0; b * 1024 < values.size(); ++b) {
    add_block(parts[(b * 5 + b / 7) % 3], &values[b * 1024], std::min<std::size_t>(1024, values.size() - b * 1024));
  }
  parts[2] += parts[0];
  parts[2] += parts[1];
  CHECK(bits(parts[2]) == bits(forward));
}

TEST_CASE("gradient_norm: bf16 and the fp32 that it widens to have the same norm") {
  std::vector<bf16> narrow(5000);
  std::vector<float> wide(5000);
  for (std::size_t e = 0; e < narrow.size(); ++e) {
    narrow[e] = spillway::narrow(recorded(6, e));
    wide[e] = widen(narrow[e]);
  }
  CHECK(bits(blocks_of(narrow)) == bits(blocks_of(wide)));
}

TEST_CASE("gradient_norm: five tensors have the norm of their concatenation") {
  gradient_sum all;
  long double wanted = 0;
  for (std::uint64_t t = 0; t < 5; ++t) {
    std::vector<float> tensor(700 * t + 1);
    for (std::size_t e = 0; e < tensor.size(); ++e) {
      tensor[e] = recorded(t, e);
      wanted += static_cast<long double>(tensor[e]) * static_cast<long double>(tensor[e]);
    }
    all += blocks_of(tensor);
  }
  CHECK(std::abs(all.squares.value() / static_cast<double>(wanted) - 1) < 1e-14);
}

TEST_CASE("gradient_norm: every value that is not finite is counted, wherever it is") {
  for (std::size_t const n : {1U, 17U, 1024U}) {
    for (std::size_t e = 0; e < n; ++e) {
      for (std::uint32_t const bad : {0x7f800000U, 0xff800000U, 0x7fc00000U, 0x7f800001U, 0xffffffffU}) {
        std::vector<float> wide(n, 1.0F);
        wide[e] = test::float_of(bad);
        std::vector<bf16> narrow(n, spillway::narrow(1.0F));
        narrow[e] = bf16{static_cast<std::uint16_t>(bad >> 16U | (bad & 1U))};
        REQUIRE(blocks_of(wide).non_finite == 1);
        REQUIRE(blocks_of(narrow).non_finite == 1);
      }
    }
  }
  std::vector<float> const all(3000, std::numeric_limits<float>::infinity());
  CHECK(blocks_of(all).non_finite == 3000);
}

TEST_CASE("gradient_norm: the largest and the smallest finite values neither overflow nor vanish") {
  std::vector<float> const largest(1024, std::numeric_limits<float>::max());
  auto const sum = blocks_of(largest);
  CHECK(sum.non_finite == 0);
  CHECK(sum.squares.value() ==
        Catch::Approx(1024.0 * std::pow(static_cast<double>(std::numeric_limits<float>::max()), 2)).epsilon(1e-14));
  std::vector<float> const smallest(1, std::numeric_limits<float>::denorm_min());
  CHECK(blocks_of(smallest).squares.value() == 0x1p-298);
}

TEST_CASE("clip_factor: torch's coefficient, at most 1") {
  CHECK(clip_factor(2, 1) == 1 / (2 + 1e-6));
  CHECK(clip_factor(1, 1) == 1 / (1 + 1e-6));  // torch clips here too
  CHECK(clip_factor(0.5, 1) == 1);
  CHECK(clip_factor(0, 1) == 1);
  CHECK(clip_factor(5, 0) == 1);
  CHECK(clip_factor(1e300, 1e-300) >= 0);
}
