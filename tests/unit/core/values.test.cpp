// SPDX-License-Identifier: Apache-2.0
// The small values: bytes, dtype, error.
#include <spillway/core/bf16.hpp>
#include <spillway/core/bytes.hpp>
#include <spillway/core/dtype.hpp>
#include <spillway/core/error.hpp>

#include <set>
#include <string>
#include <string_view>

#include "support/catch.hpp"

using namespace spillway::literals;
using spillway::bytes;
using spillway::dtype;
using spillway::errc;

TEST_CASE("bytes: 64-bit arithmetic, literals and order") {
  CHECK(1_GiB == 1024 * 1_MiB);
  CHECK(1_MiB == 1_KiB * 1024);
  CHECK((8_GiB).count == std::uint64_t{1} << 33U);
  bytes n = 3_B;
  n += 4_B;
  n -= 2_B;
  CHECK(n == 5_B);
  CHECK(4_B < 5_B);
  CHECK(7_B - 7_B == bytes{});
}

TEST_CASE("bytes: rounded up, also near 2^32 and beyond") {
  CHECK(round_up(0_B, 4096_B) == 0_B);
  CHECK(round_up(1_B, 4096_B) == 4096_B);
  CHECK(round_up(4096_B, 4096_B) == 4096_B);
  CHECK(spillway::round_up((std::uint64_t{1} << 32U) + 1, 4096) == (std::uint64_t{1} << 32U) + 4096);
  CHECK(spillway::round_up(10, 3) == 12);
}

TEST_CASE("bytes: checked arithmetic says when 64 bits do not hold the result") {
  std::uint64_t out = 0;
  CHECK((spillway::checked_multiply(std::uint64_t{1} << 31U, std::uint64_t{1} << 32U, out) && out == std::uint64_t{1}
                                                                                                         << 63U));
  CHECK(!spillway::checked_multiply(std::uint64_t{1} << 32U, std::uint64_t{1} << 32U, out));
  CHECK((spillway::checked_add(~std::uint64_t{0}, 0, out) && out == ~std::uint64_t{0}));
  CHECK(!spillway::checked_add(~std::uint64_t{0}, 1, out));
}

TEST_CASE("bytes: in words for people") {
  CHECK(to_string(0_B) == "0 B");
  CHECK(to_string(1023_B) == "1023 B");
  CHECK(to_string(1_KiB) == "1.00 KiB");
  CHECK(to_string(bytes{1536 * 1024}) == "1.50 MiB");
  CHECK(to_string(24_GiB) == "24.0 GiB");
  CHECK(to_string(bytes{~std::uint64_t{0}}) == "16384.0 PiB");
}

TEST_CASE("dtype: every one has a size and a name of its own, by which it is found") {
  std::set<std::string_view> names;
  for (std::size_t i = 0; i < spillway::dtype_table.size(); ++i) {
    auto const type = static_cast<dtype>(i);
    CHECK(names.insert(name_of(type)).second);
    CHECK(spillway::dtype_named(name_of(type)) == type);
    CHECK(bits_of(type) > 0);
  }
  CHECK(!spillway::dtype_named("bf16"));
  CHECK(!spillway::dtype_named(""));
  CHECK(name_of(dtype::bfloat16) == "BF16");
  CHECK(name_of(dtype::u64) == "U64");
  CHECK(size_of(dtype::float32) == 4_B);
  CHECK(size_of(dtype::c64) == 8_B);
  static_assert(spillway::dtype_of<float> == dtype::float32 && spillway::dtype_of<spillway::bf16> == dtype::bfloat16 &&
                spillway::dtype_of<std::uint64_t> == dtype::u64 && spillway::dtype_of<bool> == dtype::boolean);
}

TEST_CASE("error: its text has the place, the path, the numbers and the cause") {
  spillway::error const e{errc::short_transfer,
                          {.where = "file_tier read",
                           .path = "/spill/a",
                           .offset = 4096,
                           .wanted = 100_B,
                           .got = 7_B,
                           .detail = "truncated"}};
  std::string const text = e.what();
  for (char const* part :
       {"file_tier read", "/spill/a", "offset 4096", "wanted 100 B", "got 7 B", "truncated", "short transfer"}) {
    CAPTURE(part);
    CHECK(text.find(part) != std::string::npos);
  }
  CHECK(e.code() == errc::short_transfer);
  CHECK(e.about().got == 7_B);
  spillway::error const brief{std::make_error_code(std::errc::no_space_on_device), {.where = "x"}};
  CHECK(std::string(brief.what()).find("wanted") == std::string::npos);
  CHECK(brief.code() == std::errc::no_space_on_device);
}

TEST_CASE("error: every code has a text of its own") {
  std::set<std::string> texts;
  for (int i = 1; i <= static_cast<int>(errc::device_failed); ++i) {
    std::error_code const code = static_cast<errc>(i);
    CHECK(std::string_view(code.category().name()) == "spillway");
    CHECK(texts.insert(code.message()).second);
    CHECK(code.message().find("unknown") == std::string::npos);
  }
  CHECK(std::error_code(9999, std::error_code(errc::busy).category()).message() == "unknown spillway error 9999");
}
