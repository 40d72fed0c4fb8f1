// SPDX-License-Identifier: Apache-2.0
#include <spillway/core/bf16.hpp>

#include <cstdint>

#include "support/catch.hpp"
#include "support/float_bits.hpp"

using spillway::bf16;
using spillway::narrow;
using spillway::rounding;
using test::bits;
using test::float_of;

TEST_CASE("bf16: every one of the 65536 widens exactly and narrows back, NaN to the canonical one") {
  for (std::uint32_t h = 0; h < 65536; ++h) {
    bf16 const half{static_cast<std::uint16_t>(h)};
    float const wide = widen(half);
    REQUIRE(bits(wide) == h << 16U);
    bf16 const wanted = test::is_nan(wide) ? bf16{0x7fc0} : half;
    REQUIRE(narrow<rounding::nearest_even>(wide) == wanted);
    REQUIRE(narrow<rounding::nearest_away>(wide) == wanted);
  }
}

TEST_CASE("bf16: between two neighbours the nearer one, and on a tie the one that the rule names") {
  for (std::uint32_t h = 0; h < 65536; ++h) {
    if ((h & 0x7fffU) >= 0x7f80U) continue;  // infinity and NaN have no neighbours
    bf16 const toward_zero{static_cast<std::uint16_t>(h)};
    bf16 const away{static_cast<std::uint16_t>(h + 1)};  // of the largest: infinity
    for (std::uint32_t const low : {1U, 0x7fffU, 0x8000U, 0x8001U, 0xffffU}) {
      float const x = float_of(h << 16U | low);
      bf16 const nearer = low < 0x8000U ? toward_zero : away;
      REQUIRE(narrow<rounding::nearest_even>(x) == (low == 0x8000U && h % 2 == 0 ? toward_zero : nearer));
      REQUIRE(narrow<rounding::nearest_away>(x) == nearer);
    }
  }
}

TEST_CASE("bf16: any NaN narrows to the canonical quiet NaN, also those whose bits would overflow") {
  for (std::uint32_t const nan :
       {0x7f800001U, 0xff800001U, 0x7fbfffffU, 0x7fc00000U, 0xffc00000U, 0x7fffffffU, 0xffffffffU, 0x7fff8000U}) {
    CHECK(narrow(float_of(nan)).bits == 0x7fc0U);
    CHECK(narrow<rounding::nearest_away>(float_of(nan)).bits == 0x7fc0U);
  }
}

TEST_CASE("bf16: compares bits, and both rounding rules have names") {
  CHECK(bf16{0x8000} != bf16{0});
  CHECK(bf16{0x7fc0} == bf16{0x7fc0});
  CHECK(name_of(rounding::nearest_even) == "nearest_even");
  CHECK(name_of(rounding::nearest_away) == "nearest_away");
  static_assert(narrow(1.0F).bits == 0x3f80 && widen(bf16{0xc000}) == -2.0F && spillway::widen(3.5F) == 3.5F);
}
