// SPDX-License-Identifier: Apache-2.0
#include <spillway/core/f32.hpp>
#include <spillway/core/lanes.hpp>

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <vector>

#include "support/catch.hpp"
#include "support/float_bits.hpp"

using spillway::bf16;
using spillway::f32;
using spillway::lanes;
using spillway::rounding;
using test::bits;
using test::float_of;

namespace {
constexpr std::size_t count = std::size_t{1} << 20U;

/// Pairs of any bits, with all kinds of special values among them.
struct pairs {
  std::vector<float> a, b;
  pairs() : a(count), b(count) {
    std::uint32_t const special[] = {0,           0x80000000U, 1,           0x80000001U, 0x007fffffU, 0x00800000U,
                                     0x7f7fffffU, 0xff7fffffU, 0x7f800000U, 0xff800000U, 0x7fc00000U, 0xffc00001U,
                                     0x7f800001U, 0x3f800000U, 0xbf800000U, 0x7fffffffU};
    std::uint64_t x = 7;
    for (std::size_t i = 0; i < count; ++i) {
      x = x * 6364136223846793005U + 1442695040888963407U;
      auto const random = static_cast<std::uint32_t>(x >> 32U);
      a[i] = float_of(i < 256 ? special[i / 16] : random);
      b[i] = float_of(i < 256      ? special[i % 16]
                      : i % 3 == 0 ? random ^ static_cast<std::uint32_t>(x >> 20U) % 4096U
                                   : static_cast<std::uint32_t>(x));
    }
  }
};
pairs const& samples() {
  static pairs const made;
  return made;
}
std::uint32_t canonical(float x) { return test::is_nan(x) ? 0x7fc00000U : bits(x); }

/// Whether f32, lanes and `plain` (on floats that no optimiser sees through) agree on every sample.
template <class Operation, class Plain>
bool agree(Operation operation, Plain plain) {
  auto const& [a, b] = samples();
  for (std::size_t i = 0; i < count; i += lanes::width) {
    float wide[lanes::width];
    lanes const many = operation(lanes::load(&a[i]), lanes::load(&b[i]));
    many.store(wide);
    for (std::size_t j = 0; j < lanes::width; ++j) {
      float one = 0;
      operation(f32::load(&a[i + j]), f32::load(&b[i + j])).store(&one);
      float volatile x = a[i + j];
      float volatile y = b[i + j];
      float volatile z = plain(x, y);
      if (bits(one) != bits(wide[j]) || bits(one) != canonical(z)) {
        CAPTURE(bits(a[i + j]), bits(b[i + j]), bits(one), bits(wide[j]), canonical(z));
        CHECK(false);
        return false;
      }
    }
  }
  return true;
}
}  // namespace

TEST_CASE("f32 and lanes: every operator is one IEEE rounding, for any bits") {
  CHECK(agree([](auto a, auto b) { return a + b; }, [](float a, float b) { return a + b; }));
  CHECK(agree([](auto a, auto b) { return a - b; }, [](float a, float b) { return a - b; }));
  CHECK(agree([](auto a, auto b) { return a * b; }, [](float a, float b) { return a * b; }));
  CHECK(agree([](auto a, auto b) { return a / b; }, [](float a, float b) { return a / b; }));
  CHECK(agree([](auto a, auto) { return sqrt(a); }, [](float a, float) { return std::sqrt(a); }));
  CHECK(agree([](auto a, auto b) { return max(a, b); }, [](float a, float b) { return a < b ? b : a; }));
}

TEST_CASE("f32 and lanes: a product that is added is rounded twice, never fused") {
  float const x = 1 + 0x1p-12F;
  float out = 0;
  (f32{x} * f32{x} - f32{1 + 0x1p-11F}).store(&out);
  CHECK(out == 0);  // fused it would be 2^-24
  float wide[lanes::width];
  (lanes{x} * lanes{x} - lanes{1 + 0x1p-11F}).store(wide);
  for (float const v : wide) CHECK(v == 0);
}

TEST_CASE("f32 and lanes: one value in every lane") {
  float wide[lanes::width];
  lanes{2.5F}.store(wide);
  for (float const v : wide) CHECK(v == 2.5F);
  CHECK(f32{2.5F}.value == 2.5F);
  CHECK(f32{}.value == 0);
}

TEST_CASE("f32 and lanes: NaN is stored as one pattern, in fp32 and in bf16") {
  for (std::uint32_t const nan : {0x7fc00000U, 0xffc00000U, 0x7f800001U, 0x7fffffffU, 0xffffffffU}) {
    float const from[lanes::width] = {float_of(nan), 1.0F, float_of(nan)};
    float to[lanes::width];
    bf16 half[lanes::width];
    lanes::load(from).store(to);
    lanes::load(from).store<rounding::nearest_even>(half);
    CHECK(bits(to[0]) == 0x7fc00000U);
    CHECK(to[1] == 1.0F);
    CHECK(bits(to[2]) == 0x7fc00000U);
    CHECK(half[0].bits == 0x7fc0U);
    CHECK(half[1].bits == 0x3f80U);
    f32::load(from).store(to);
    f32::load(from).store<rounding::nearest_away>(half);
    CHECK(bits(to[0]) == 0x7fc00000U);
    CHECK(half[0].bits == 0x7fc0U);
    f32::load(from).store<rounding::nearest_away>(to);
    CHECK(bits(to[0]) == 0x7fc00000U);
  }
}

TEST_CASE("f32 and lanes: bf16 is loaded exactly and stored by the rule that is named") {
  auto const same = [](auto rule) {
    auto const& a = samples().a;
    for (std::size_t i = 0; i < count; i += lanes::width) {
      bf16 wide[lanes::width];
      lanes::load(&a[i]).template store<rule()>(wide);
      for (std::size_t j = 0; j < lanes::width; ++j) {
        bf16 one;
        f32::load(&a[i + j]).template store<rule()>(&one);
        if (one != wide[j] || one != spillway::narrow<rule()>(a[i + j])) return false;
      }
      float back[lanes::width];
      lanes::load(wide).store(back);
      for (std::size_t j = 0; j < lanes::width; ++j) {
        if (bits(back[j]) != canonical(widen(wide[j])) || bits(f32::load(&wide[j]).value) != bits(widen(wide[j])))
          return false;
      }
    }
    return true;
  };
  CHECK(same(std::integral_constant<rounding, rounding::nearest_even>{}));
  CHECK(same(std::integral_constant<rounding, rounding::nearest_away>{}));
}

TEST_CASE("lanes: loads and stores need no alignment and touch sixteen elements only") {
  std::vector<float> memory(40, 9.0F);
  std::vector<bf16> halves(40, bf16{0x1234});
  for (std::size_t at = 1; at < 20; ++at) {
    lanes{1.0F}.store(&memory[at]);
    lanes{1.0F}.store<rounding::nearest_even>(&halves[at]);
    CHECK((memory[at - 1] == (at == 1 ? 9.0F : 1.0F) && memory[at + 16] == 9.0F));
    CHECK((halves[at + 16].bits == 0x1234));
    CHECK((memory[at + 15] == 1.0F && halves[at + 15].bits == 0x3f80));
  }
  CHECK(halves[0].bits == 0x1234);
}
