// SPDX-License-Identifier: Apache-2.0
#include <spillway/core/digest.hpp>

#include <string>
#include <vector>

#include "support/catch.hpp"

namespace {
std::vector<std::byte> pattern(std::size_t n, unsigned seed) {
  std::vector<std::byte> out(n);
  for (std::size_t i = 0; i < n; ++i) out[i] = static_cast<std::byte>((i * 2654435761U + seed * 40503U) >> 7U);
  return out;
}
std::string published(spillway::hash128 h) {  // as the literature prints it: h1 then h2
  return to_string(spillway::hash128{h.high, h.low});
}
}  // namespace

TEST_CASE("digest: hash_bytes gives the published answers of MurmurHash3 x64 128") {
  CHECK(published(spillway::hash_bytes(std::string_view{})) == "00000000000000000000000000000000");
  CHECK(published(spillway::hash_bytes("hello")) == "cbd8a7b341bd9b025b1e906a48ae1d19");
  CHECK(published(spillway::hash_bytes("The quick brown fox jumps over the lazy dog")) ==
        "e34bbc7bbc071b6c7a433ca9c49a9347");
}

TEST_CASE("digest: the known answer of this library's block hash does not change") {
  spillway::state_digest digest;
  digest.add_blocks("optimizer/wte/exp_avg", 3, spillway::bytes{4096}, pattern(10000, 1));
  digest.add("leaves/step", 0, pattern(8, 2));
  CHECK(to_string(digest) == "1d8a9ca73234196b6beff4c3b344987f");
}

TEST_CASE("digest: hexadecimal text goes both ways and only the exact form is read") {
  spillway::hash128 const value{0x0123456789abcdefU, 0xfedcba9876543210U};
  CHECK(to_string(value) == "fedcba98765432100123456789abcdef");
  CHECK(spillway::hash128_from("fedcba98765432100123456789abcdef") == value);
  CHECK_FALSE(spillway::hash128_from("FEDCBA98765432100123456789abcdef"));
  CHECK_FALSE(spillway::hash128_from("fedcba98765432100123456789abcde"));
  CHECK_FALSE(spillway::hash128_from("fedcba98765432100123456789abcdef0"));
  CHECK_FALSE(spillway::hash128_from("fedcba98765432100123456789abcdeg"));
  CHECK_FALSE(spillway::hash128_from(""));
}

TEST_CASE("digest: neither the cut into pieces nor their order changes it") {
  auto const data = pattern(7 * 4096 + 100, 1);
  std::span<std::byte const> const all{data};
  spillway::state_digest whole;
  whole.add_blocks("t", 0, spillway::bytes{4096}, all);
  spillway::state_digest tail;
  tail.add_blocks("t", 5, spillway::bytes{4096}, all.subspan(5 * 4096));
  tail.add_blocks("t", 0, spillway::bytes{4096}, all.first(2 * 4096));
  spillway::state_digest middle;
  for (std::uint64_t block = 5; block-- > 2;) middle.add("t", block, all.subspan(block * 4096, 4096));
  CHECK(tail + middle == whole);
  CHECK(middle + tail == whole);
}

TEST_CASE("digest: every byte, its place, its name and the length matter") {
  auto const data = pattern(3 * 64 + 5, 1);
  auto const digest_of = [](std::string_view name, std::uint64_t first, std::span<std::byte const> bytes) {
    spillway::state_digest d;
    d.add_blocks(name, first, spillway::bytes{64}, bytes);
    return d;
  };
  auto const base = digest_of("a", 0, data);
  for (std::size_t i = 0; i < data.size(); ++i) {
    auto changed = data;
    changed[i] ^= std::byte{1};
    CHECK_FALSE(digest_of("a", 0, changed) == base);
  }
  CHECK_FALSE(digest_of("b", 0, data) == base);
  CHECK_FALSE(digest_of("a", 1, data) == base);
  auto swapped = data;
  std::swap_ranges(swapped.begin(), swapped.begin() + 64, swapped.begin() + 64);
  CHECK_FALSE(digest_of("a", 0, swapped) == base);
  // Zeros at the end are not the same as no bytes.
  std::vector<std::byte> const zeros(48);
  CHECK_FALSE(digest_of("a", 0, zeros) == digest_of("a", 0, std::span{zeros}.first(47)));
  CHECK_FALSE(digest_of("a", 0, {}) == spillway::state_digest{});
}
