// SPDX-License-Identifier: Apache-2.0
/// A digest of training state that does not depend on how the state was cut: chunks, ranks and order leave it alone.
#pragma once

#include <spillway/core/bytes.hpp>

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace spillway::inline v0 {

/// 128 bits of hash. Not cryptographic: it finds accidents, not attackers.
struct hash128 {
  std::uint64_t low = 0;
  std::uint64_t high = 0;
  friend constexpr bool operator==(hash128, hash128) noexcept = default;
};

namespace detail {

/// MurmurHash3 x64 128 with a 128-bit seed, fed in pieces of 16 bytes.
class murmur3 {
 public:
  explicit constexpr murmur3(hash128 seed) noexcept : h1_(seed.low), h2_(seed.high) {}

  constexpr void mix(std::uint64_t k1, std::uint64_t k2) noexcept {
    h1_ ^= scramble1(k1);
    h1_ = std::rotl(h1_, 27) + h2_;
    h1_ = h1_ * 5 + 0x52dce729U;
    h2_ ^= scramble2(k2);
    h2_ = std::rotl(h2_, 31) + h1_;
    h2_ = h2_ * 5 + 0x38495ab5U;
  }
  /// The last bytes, 0 to 15 of them. Calls to mix end here.
  constexpr void mix_tail(std::uint64_t k1, std::uint64_t k2) noexcept {
    h1_ ^= scramble1(k1);
    h2_ ^= scramble2(k2);
  }
  [[nodiscard]] constexpr hash128 finish(std::uint64_t length) noexcept {
    h1_ ^= length;
    h2_ ^= length;
    h1_ += h2_;
    h2_ += h1_;
    h1_ = avalanche(h1_);
    h2_ = avalanche(h2_);
    h1_ += h2_;
    h2_ += h1_;
    return {h1_, h2_};
  }
  void mix_bytes(std::span<std::byte const> data) noexcept {
    std::byte const* at = data.data();
    std::size_t left = data.size();
    std::uint64_t words[2];
    for (; left >= sizeof words; at += sizeof words, left -= sizeof words) {
      std::memcpy(words, at, sizeof words);
      mix(words[0], words[1]);
    }
    words[0] = words[1] = 0;
    if (left != 0) std::memcpy(words, at, left);
    mix_tail(words[0], words[1]);
  }

 private:
  static constexpr std::uint64_t c1 = 0x87c37b91114253d5U;
  static constexpr std::uint64_t c2 = 0x4cf5ad432745937fU;
  static constexpr std::uint64_t scramble1(std::uint64_t k) noexcept { return std::rotl(k * c1, 31) * c2; }
  static constexpr std::uint64_t scramble2(std::uint64_t k) noexcept { return std::rotl(k * c2, 33) * c1; }
  static constexpr std::uint64_t avalanche(std::uint64_t h) noexcept {
    h = (h ^ (h >> 33U)) * 0xff51afd7ed558ccdU;
    h = (h ^ (h >> 33U)) * 0xc4ceb9fe1a85ec53U;
    return h ^ (h >> 33U);
  }
  std::uint64_t h1_;
  std::uint64_t h2_;
};
static_assert(std::endian::native == std::endian::little,
              "hashes and files are little-endian; this library has not met another");

}  // namespace detail

/// MurmurHash3 x64 128 of `data`.
/// Errors   none; noexcept.
/// Threads  safe.
/// Source   Austin Appleby, MurmurHash3_x64_128; a seed of 128 bits instead of 32.
[[nodiscard]] inline hash128 hash_bytes(std::span<std::byte const> data, hash128 seed = {}) noexcept {
  detail::murmur3 state{seed};
  state.mix_bytes(data);
  return state.finish(data.size());
}
[[nodiscard]] inline hash128 hash_bytes(std::string_view text, hash128 seed = {}) noexcept {
  return hash_bytes(std::as_bytes(std::span{text}), seed);
}

/// 32 hexadecimal digits, highest first.
[[nodiscard]] inline std::string to_string(hash128 value) {
  constexpr char const* digits = "0123456789abcdef";
  std::string out;
  for (std::uint64_t const word : {value.high, value.low}) {
    for (unsigned shift = 64; shift != 0; shift -= 4) out += digits[(word >> (shift - 4)) & 0xfU];
  }
  return out;
}
/// The inverse of to_string: exactly 32 lower-case digits.
[[nodiscard]] constexpr std::optional<hash128> hash128_from(std::string_view hex) noexcept {
  if (hex.size() != 32) return std::nullopt;
  std::uint64_t words[2] = {};
  for (std::size_t i = 0; i < hex.size(); ++i) {
    char const c = hex[i];
    bool const decimal = c >= '0' && c <= '9';
    if (!decimal && !(c >= 'a' && c <= 'f')) return std::nullopt;
    words[i / 16] = words[i / 16] << 4U | static_cast<std::uint64_t>(decimal ? c - '0' : c - 'a' + 10);
  }
  return hash128{words[1], words[0]};
}

/// The sum of one keyed hash per block, so that parts may be added in any order, by any thread or rank, and joined by +.
/// What it stands for: for each named array, the stored bytes of its elements, in blocks of 1024 elements of that array.
/// Threads  one at a time; add copies up.
struct state_digest {
  hash128 sum{};

  /// Count block `block` of the array `name`: its true elements' bytes, without padding.
  /// Errors   none; noexcept.
  /// Cost     one read of the bytes.
  void add(std::string_view name, std::uint64_t block, std::span<std::byte const> data) noexcept {
    add(hash_bytes(name), block, data);
  }
  /// Count consecutive blocks of `block_bytes`, the last one perhaps shorter. No bytes count as one empty block.
  void add_blocks(std::string_view name, std::uint64_t first_block, bytes block_bytes,
                  std::span<std::byte const> data) noexcept {
    hash128 const key = hash_bytes(name);
    do {
      std::size_t const take =
          data.size() < block_bytes.count ? data.size() : static_cast<std::size_t>(block_bytes.count);
      add(key, first_block++, data.first(take));
      data = data.subspan(take);
    } while (!data.empty());
  }
  state_digest& operator+=(state_digest other) noexcept {
    sum.low += other.sum.low;
    sum.high += other.sum.high;
    return *this;
  }
  friend state_digest operator+(state_digest a, state_digest b) noexcept { return a += b; }
  friend constexpr bool operator==(state_digest, state_digest) noexcept = default;

 private:
  void add(hash128 key, std::uint64_t block, std::span<std::byte const> data) noexcept {
    detail::murmur3 state{key};
    state.mix(block, data.size());
    state.mix_bytes(data);
    *this += state_digest{state.finish(data.size())};
  }
};

[[nodiscard]] inline std::string to_string(state_digest digest) { return to_string(digest.sum); }

}  // namespace spillway::inline v0
