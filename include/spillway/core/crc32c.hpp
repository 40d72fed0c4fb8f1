// SPDX-License-Identifier: Apache-2.0
/// CRC-32C (Castagnoli), as iSCSI, ext4 and RFC 3720 compute it.
#pragma once

#include <spillway/core/bytes.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#if defined(__x86_64__)
#include <nmmintrin.h>
#include <wmmintrin.h>
#endif

namespace spillway::inline v0 {

namespace detail {

// Residues are bit-reflected: bit 31 is the coefficient of x^0, so a multiplication by x shifts right.
inline constexpr std::uint32_t crc32c_polynomial = 0x82f63b78U;

constexpr std::uint32_t crc32c_times_x(std::uint32_t a) noexcept {
  return (a >> 1U) ^ ((a & 1U) != 0 ? crc32c_polynomial : 0U);
}

constexpr std::uint32_t crc32c_multiply(std::uint32_t a, std::uint32_t b) noexcept {
  std::uint32_t product = 0;
  for (std::uint32_t bit = 1U << 31U; bit != 0; bit >>= 1U) {
    if ((a & bit) != 0) product ^= b;
    b = crc32c_times_x(b);
  }
  return product;
}

constexpr std::uint32_t crc32c_power(std::uint32_t base, std::uint64_t exponent) noexcept {
  std::uint32_t result = 1U << 31U;
  for (; exponent != 0; exponent >>= 1U) {
    if ((exponent & 1U) != 0) result = crc32c_multiply(result, base);
    base = crc32c_multiply(base, base);
  }
  return result;
}
inline constexpr std::uint32_t crc32c_x = 1U << 30U;
inline constexpr std::uint32_t crc32c_x8 = 1U << 23U;

/// tables[k][b]: what byte b does to the state when k more bytes follow it.
inline constexpr auto crc32c_tables = [] {
  std::array<std::array<std::uint32_t, 256>, 8> tables{};
  for (std::uint32_t byte = 0; byte < 256; ++byte) {
    std::uint32_t state = byte;
    for (int bit = 0; bit < 8; ++bit) state = crc32c_times_x(state);
    tables[0][byte] = state;
  }
  for (std::size_t k = 1; k < 8; ++k) {
    for (std::size_t byte = 0; byte < 256; ++byte) {
      std::uint32_t const before = tables[k - 1][byte];
      tables[k][byte] = (before >> 8U) ^ tables[0][before & 0xffU];
    }
  }
  return tables;
}();

/// The state after `n` bytes, without the inversions at both ends. Eight bytes a round, byte by byte on any endianness.
inline std::uint32_t crc32c_table(std::byte const* at, std::size_t n, std::uint32_t state) noexcept {
  for (; n >= 8; at += 8, n -= 8) {
    std::uint32_t next = 0;
    for (std::size_t i = 0; i < 8; ++i) {
      auto byte = std::to_integer<std::uint32_t>(at[i]);
      if (i < 4) byte ^= (state >> (8U * i)) & 0xffU;
      next ^= crc32c_tables[7 - i][byte];
    }
    state = next;
  }
  for (; n != 0; ++at, --n) {
    state = (state >> 8U) ^ crc32c_tables[0][(state ^ std::to_integer<std::uint32_t>(*at)) & 0xffU];
  }
  return state;
}

#if defined(__x86_64__)
inline std::uint64_t crc32c_load(std::byte const* at) noexcept {
  std::uint64_t word = 0;
  std::memcpy(&word, at, sizeof word);
  return word;
}

/// `state` times the residue `factor` times x^33: a carry-less product is one bit short of 64, and the instruction that
/// reduces it multiplies by x^32.
__attribute__((target("sse4.2,pclmul"))) inline std::uint32_t crc32c_shift(std::uint32_t state,
                                                                           std::uint32_t factor) noexcept {
  __m128i const product =
      _mm_clmulepi64_si128(_mm_cvtsi64_si128(state), _mm_cvtsi64_si128(static_cast<std::int64_t>(factor)), 0);
  return static_cast<std::uint32_t>(_mm_crc32_u64(0, static_cast<std::uint64_t>(_mm_cvtsi128_si64(product))));
}

/// The instruction takes 3 cycles and starts one a cycle, so three lanes of `Lane` bytes run at the same time and are
/// joined.
template <std::size_t Lane>
__attribute__((target("sse4.2,pclmul"))) inline std::uint32_t crc32c_lanes(std::byte const*& at, std::size_t& n,
                                                                           std::uint32_t state) noexcept {
  constexpr std::uint32_t over_one = crc32c_power(crc32c_x, 8 * Lane - 33);
  constexpr std::uint32_t over_two = crc32c_power(crc32c_x, 16 * Lane - 33);
  for (; n >= 3 * Lane; at += 3 * Lane, n -= 3 * Lane) {
    std::uint64_t a = state;
    std::uint64_t b = 0;
    std::uint64_t c = 0;
    for (std::size_t i = 0; i < Lane; i += 8) {
      a = _mm_crc32_u64(a, crc32c_load(at + i));
      b = _mm_crc32_u64(b, crc32c_load(at + Lane + i));
      c = _mm_crc32_u64(c, crc32c_load(at + 2 * Lane + i));
    }
    state = crc32c_shift(static_cast<std::uint32_t>(a), over_two) ^
            crc32c_shift(static_cast<std::uint32_t>(b), over_one) ^ static_cast<std::uint32_t>(c);
  }
  return state;
}

__attribute__((target("sse4.2,pclmul"))) inline std::uint32_t crc32c_hardware(std::byte const* at, std::size_t n,
                                                                              std::uint32_t state) noexcept {
  state = crc32c_lanes<4096>(at, n, state);
  state = crc32c_lanes<256>(at, n, state);
  std::uint64_t wide = state;
  for (; n >= 8; at += 8, n -= 8) wide = _mm_crc32_u64(wide, crc32c_load(at));
  state = static_cast<std::uint32_t>(wide);
  for (; n != 0; ++at, --n) state = _mm_crc32_u8(state, std::to_integer<std::uint8_t>(*at));
  return state;
}

inline bool crc32c_has_hardware() noexcept {
  return __builtin_cpu_supports("sse4.2") != 0 && __builtin_cpu_supports("pclmul") != 0;
}
#endif

}  // namespace detail

/// The CRC-32C of `data`; of everything so far when `previous` is the CRC-32C of what came before.
/// Errors   none; noexcept.
/// Threads  safe.
/// Cost     one read of the data, no allocation; the crc32 instruction where the machine has it, else a table of 8 KiB.
[[nodiscard]] inline std::uint32_t crc32c(std::span<std::byte const> data, std::uint32_t previous = 0) noexcept {
#if defined(__x86_64__)
  if (detail::crc32c_has_hardware()) return ~detail::crc32c_hardware(data.data(), data.size(), ~previous);
#endif
  return ~detail::crc32c_table(data.data(), data.size(), ~previous);
}

/// The CRC-32C of A followed by B, from that of A, that of B and the length of B.
/// Errors   none; noexcept.
/// Threads  safe.
/// Cost     about 64 to 128 products of 32 steps for any length; no data is read.
[[nodiscard]] constexpr std::uint32_t crc32c_combine(std::uint32_t a, std::uint32_t b, bytes length_of_b) noexcept {
  return detail::crc32c_multiply(a, detail::crc32c_power(detail::crc32c_x8, length_of_b.count)) ^ b;
}

}  // namespace spillway::inline v0
