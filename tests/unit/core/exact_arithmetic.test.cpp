// SPDX-License-Identifier: Apache-2.0
#include <spillway/core/exact_arithmetic.hpp>

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

#include "support/catch.hpp"

using spillway::f64;
using spillway::float_environment;
using spillway::power;

TEST_CASE("f64: each operation is rounded by itself") {
  double const x = 1 + 0x1p-30;
  CHECK((f64{x} * x - (1 + 0x1p-29)).value == 0);  // fused it would be 2^-60
  CHECK((f64{1} / 3.0).value == 1.0 / 3.0);
  CHECK((f64{1} + 0x1p-53).value == 1);
  CHECK((f64{1} - 0x1p-54).value == 1);
  CHECK((f64{0x1p53} + 1.0 - 0x1p53).value == 0);  // never reassociated
}

TEST_CASE("f64: square roots are correctly rounded") {
  CHECK(sqrt(f64{2}).value == 1.4142135623730951);
  CHECK(sqrt(f64{0}).value == 0);
  CHECK(sqrt(f64{0x1p-1074}).value == 0x1p-537);
  CHECK(sqrt(f64{std::numeric_limits<double>::infinity()}).value == std::numeric_limits<double>::infinity());
}

TEST_CASE("f64: narrowed once to nearest, ties to even") {
  CHECK(f64{1 + 0x1p-24}.narrowed() == 1.0F);
  CHECK(f64{1 + 0x1.000002p-24}.narrowed() == 1 + 0x1p-23F);
  CHECK(f64{1 + 0x1.8p-23}.narrowed() == 1 + 0x1p-22F);
  CHECK(f64{1e300}.narrowed() == std::numeric_limits<float>::infinity());
}

TEST_CASE("power: exact where the result is, and within n roundings of the true power elsewhere") {
  for (std::uint64_t n = 0; n < 60; ++n) CHECK(power(2, n).value == std::ldexp(1.0, static_cast<int>(n)));
  CHECK(power(3, 33).value == 5559060566555523.0);
  CHECK(power(0, 0).value == 1);
  CHECK(power(0.5, 1074).value == 0x1p-1074);
  CHECK(power(0.9, ~std::uint64_t{0}).value == 0);
  CHECK(power(1, ~std::uint64_t{0}).value == 1);
  for (double const base : {0.9, 0.95, 0.99, 0.999, 0.9999}) {
    for (std::uint64_t n = 1; n < 3000; n += 13) {
      auto const wanted = static_cast<double>(std::pow(static_cast<long double>(base), static_cast<long double>(n)));
      double const each = std::numeric_limits<double>::epsilon();  // squaring doubles the relative error
      CHECK(std::abs(power(base, n).value / wanted - 1) <= static_cast<double>(n) * each);
    }
  }
}

TEST_CASE("power: a function of base and exponent alone, the same bits wherever it is compiled") {
  CHECK(std::bit_cast<std::uint64_t>(power(0.9, 1000).value) == 0x366fee7413dac412U);
  CHECK(std::bit_cast<std::uint64_t>(power(0.999, 777).value) == 0x3fdd6a2958545178U);
}

#if defined(__x86_64__)
TEST_CASE("float_environment: denormals and nearest within, what was before after") {
  unsigned const before = _mm_getcsr();
  unsigned const flushing = 0x9fc0U;
  unsigned const upward = flushing | 0x4000U;
  _mm_setcsr(upward);
  double volatile tiny = 0x1p-1074;
  double volatile one = 1;
  double volatile inside = 0;
  double volatile sum = 0;
  {
    float_environment const exact;
    inside = tiny * one;
    sum = one + 0x1p-60;
  }
  double volatile outside = tiny * one;
  unsigned const after = _mm_getcsr();
  _mm_setcsr(before);
  CHECK(inside == 0x1p-1074);
  CHECK(sum == 1);
  CHECK(outside == 0);
  CHECK((after & 0xffc0U) == (upward & 0xffc0U));
}
#endif
