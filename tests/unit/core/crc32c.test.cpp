// SPDX-License-Identifier: Apache-2.0
#include <spillway/core/crc32c.hpp>

#include <cstddef>
#include <cstdint>
#include <random>
#include <span>
#include <string_view>
#include <vector>

#include "support/catch.hpp"

namespace {

using spillway::crc32c;
using spillway::crc32c_combine;

std::vector<std::byte> random_bytes(std::size_t n) {
  std::mt19937_64 engine(n + 1);
  std::vector<std::byte> out(n);
  for (auto& byte : out) byte = static_cast<std::byte>(engine() & 0xffU);
  return out;
}

std::uint32_t of_text(std::string_view text) { return crc32c(std::as_bytes(std::span(text))); }

/// Bit by bit, straight from the definition: no code shared with the library.
std::uint32_t by_definition(std::span<std::byte const> data) {
  std::uint32_t state = 0xffffffffU;
  for (auto const byte : data) {
    state ^= std::to_integer<std::uint32_t>(byte);
    for (int bit = 0; bit < 8; ++bit) state = (state & 1U) != 0 ? (state >> 1U) ^ 0x82f63b78U : state >> 1U;
  }
  return ~state;
}

}  // namespace

TEST_CASE("crc32c: gives the published values") {
  CHECK(of_text("") == 0);
  CHECK(of_text("123456789") == 0xe3069283U);
  CHECK(of_text("a") == 0xc1d04330U);
  // RFC 3720, appendix B.4.
  std::vector<std::byte> data(32);
  CHECK(crc32c(data) == 0x8a9136aaU);
  for (auto& byte : data) byte = std::byte{0xff};
  CHECK(crc32c(data) == 0x62a8ab43U);
  for (std::size_t i = 0; i < 32; ++i) data[i] = static_cast<std::byte>(i);
  CHECK(crc32c(data) == 0x46dd794eU);
  for (std::size_t i = 0; i < 32; ++i) data[i] = static_cast<std::byte>(31 - i);
  CHECK(crc32c(data) == 0x113fdb5cU);
}

TEST_CASE("crc32c: every path gives the same value at every length and address") {
  auto const data = random_bytes(40'000);
  // Around nothing, a word, both lane lengths times three, and both loops together.
  for (std::size_t const centre : {16U, 256U, 768U, 1536U, 4096U, 12'288U, 12'288U + 768U, 24'576U + 1536U}) {
    for (std::size_t n = centre - 16; n <= centre + 16; ++n) {
      for (std::size_t const shift : {0U, 1U, 7U}) {
        auto const part = std::span(data).subspan(shift, n);
        auto const expected = by_definition(part);
        REQUIRE(crc32c(part) == expected);
        REQUIRE(~spillway::detail::crc32c_table(part.data(), part.size(), ~0U) == expected);
#if defined(__x86_64__)
        if (spillway::detail::crc32c_has_hardware()) {
          REQUIRE(~spillway::detail::crc32c_hardware(part.data(), part.size(), ~0U) == expected);
        }
#endif
      }
    }
  }
}

TEST_CASE("crc32c: goes on from a previous value") {
  auto const data = random_bytes(30'000);
  auto const whole = crc32c(data);
  for (std::size_t const cut : {0U, 1U, 8U, 777U, 12'288U, 29'999U, 30'000U}) {
    CHECK(crc32c(std::span(data).subspan(cut), crc32c(std::span(data).first(cut))) == whole);
  }
}

TEST_CASE("crc32c_combine: joins two values without the data") {
  auto const data = random_bytes(30'000);
  auto const whole = crc32c(data);
  for (std::size_t const cut : {0U, 1U, 8U, 777U, 12'288U, 29'999U, 30'000U}) {
    auto const tail = std::span(data).subspan(cut);
    CHECK(crc32c_combine(crc32c(std::span(data).first(cut)), crc32c(tail), spillway::bytes{tail.size()}) == whole);
  }
}

TEST_CASE("crc32c_combine: a length near 2^64 is the sum of its halves") {
  spillway::bytes const half{(1ULL << 63U) - 1};
  auto const twice = crc32c_combine(crc32c_combine(0x12345678U, 0, half), 0, half);
  CHECK(crc32c_combine(0x12345678U, 0, spillway::bytes{half.count * 2}) == twice);
}

TEST_CASE("crc32c: a flipped bit anywhere changes the value") {
  auto data = random_bytes(13'100);
  auto const before = crc32c(data);
  for (std::size_t i = 0; i < data.size(); i += 97) {
    data[i] ^= std::byte{0x10};
    REQUIRE(crc32c(data) != before);
    data[i] ^= std::byte{0x10};
  }
  CHECK(crc32c(data) == before);
}
