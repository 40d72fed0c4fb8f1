// SPDX-License-Identifier: Apache-2.0
/// Values of leaves and checksums as text in a manifest, both ways.
#pragma once

#include <spillway/core/dtype.hpp>

#include <array>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

namespace spillway::inline v0::detail {

inline void append_hex(std::string& out, std::span<std::byte const> data) {
  constexpr char const* digits = "0123456789abcdef";
  for (std::byte const b : data) {
    out += digits[std::to_integer<unsigned>(b) >> 4U];
    out += digits[std::to_integer<unsigned>(b) & 0xfU];
  }
}
[[nodiscard]] inline std::optional<std::vector<std::byte>> bytes_from_hex(std::string_view hex) {
  if (hex.size() % 2 != 0) return std::nullopt;
  std::vector<std::byte> out(hex.size() / 2);
  for (std::size_t i = 0; i < hex.size(); ++i) {
    char const c = hex[i];
    bool const decimal = c >= '0' && c <= '9';
    if (!decimal && !(c >= 'a' && c <= 'f')) return std::nullopt;
    auto const digit = static_cast<std::byte>(decimal ? c - '0' : c - 'a' + 10);
    out[i / 2] = out[i / 2] << 4U | digit;
  }
  return out;
}

template <class T>
[[nodiscard]] std::string number_text(std::span<std::byte const> data) {
  T value{};
  std::memcpy(&value, data.data(), sizeof value);
  std::array<char, 64> text{};
  auto const done = std::to_chars(text.data(), text.data() + text.size(), value);
  return {text.data(), done.ptr};
}
template <class T>
[[nodiscard]] std::optional<std::vector<std::byte>> number_bytes(std::string_view text) {
  T value{};
  auto const done = std::from_chars(text.data(), text.data() + text.size(), value);
  if (done.ec != std::errc{} || done.ptr != text.data() + text.size()) return std::nullopt;
  std::vector<std::byte> out(sizeof value);
  std::memcpy(out.data(), &value, sizeof value);
  return out;
}

/// Calls with the C++ type that std::to_chars writes exactly for that dtype; otherwise with void: bytes are the only exact text.
template <class Call>
auto with_number_type(dtype type, Call call) {
  switch (type) {
    case dtype::i8:
      return call(std::int8_t{});
    case dtype::u8:
      return call(std::uint8_t{});
    case dtype::i16:
      return call(std::int16_t{});
    case dtype::u16:
      return call(std::uint16_t{});
    case dtype::i32:
      return call(std::int32_t{});
    case dtype::u32:
      return call(std::uint32_t{});
    case dtype::i64:
      return call(std::int64_t{});
    case dtype::u64:
      return call(std::uint64_t{});
    case dtype::float32:
      return call(float{});
    case dtype::float64:
      return call(double{});
    default:
      return call(nullptr);
  }
}

/// A scalar as people read it: decimal, the shortest that reads back to the same bits; "0x" and the stored bytes for what has no
/// exact decimal (not-a-number with its payload, bfloat16). Text, since JSON numbers lose bits in many readers.
[[nodiscard]] inline std::string scalar_text(dtype type, std::span<std::byte const> data) {
  if (type == dtype::boolean) return data[0] != std::byte{0} ? "true" : "false";
  return with_number_type(type, [&](auto zero) -> std::string {
    using T = decltype(zero);
    std::string out;
    if constexpr (!std::is_same_v<T, std::nullptr_t>) {
      out = number_text<T>(data);
      auto const back = number_bytes<T>(out);
      if (back && std::memcmp(back->data(), data.data(), data.size()) == 0) return out;
    }
    out = "0x";
    append_hex(out, data);
    return out;
  });
}
[[nodiscard]] inline std::optional<std::vector<std::byte>> scalar_bytes(dtype type, std::string_view text) {
  if (type == dtype::boolean) {
    if (text != "true" && text != "false") return std::nullopt;
    return std::vector<std::byte>{text == "true" ? std::byte{1} : std::byte{0}};
  }
  if (text.substr(0, 2) == "0x") {
    auto out = bytes_from_hex(text.substr(2));
    if (out && out->size() != size_of(type).count) return std::nullopt;
    return out;
  }
  return with_number_type(type, [&](auto zero) -> std::optional<std::vector<std::byte>> {
    using T = decltype(zero);
    if constexpr (std::is_same_v<T, std::nullptr_t>) {
      return std::nullopt;
    } else {
      return number_bytes<T>(text);
    }
  });
}

/// Eight digits each, one after the other.
[[nodiscard]] inline std::string checksums_text(std::span<std::uint32_t const> checksums) {
  constexpr char const* digits = "0123456789abcdef";
  std::string out;
  out.reserve(checksums.size() * 8);
  for (std::uint32_t const value : checksums) {
    for (unsigned shift = 32; shift != 0; shift -= 4) out += digits[(value >> (shift - 4)) & 0xfU];
  }
  return out;
}
[[nodiscard]] inline std::optional<std::vector<std::uint32_t>> checksums_from(std::string_view text) {
  auto const raw = bytes_from_hex(text);
  if (!raw || raw->size() % 4 != 0) return std::nullopt;
  std::vector<std::uint32_t> out(raw->size() / 4);
  for (std::size_t i = 0; i < raw->size(); ++i)
    out[i / 4] = out[i / 4] << 8U | std::to_integer<std::uint32_t>((*raw)[i]);
  return out;
}

/// What ends every manifest: the hash of all that comes before it.
inline constexpr std::string_view self_hash_before = ",\"self\":\"";
inline constexpr std::string_view self_hash_after = "\"}\n";
inline constexpr std::size_t self_hash_size = self_hash_before.size() + 32 + self_hash_after.size();

}  // namespace spillway::inline v0::detail
