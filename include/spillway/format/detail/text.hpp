// SPDX-License-Identifier: Apache-2.0
/// UTF-8, names in messages, and repeated names: what the JSON reader, the JSON writer and safetensors share.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace spillway::inline v0::detail {

/// Where the first sequence that is not UTF-8 begins; npos when all is well. The ranges are those of Unicode 15, table
/// 3-7: they rule out overlong forms, surrogates and everything above U+10FFFF.
[[nodiscard]] constexpr std::size_t invalid_utf8_at(std::string_view text) noexcept {
  std::size_t at = 0;
  while (at < text.size()) {
    auto const lead = static_cast<unsigned char>(text[at]);
    if (lead < 0x80) {
      ++at;
      continue;
    }
    unsigned low = 0x80;
    unsigned high = 0xbf;
    std::size_t more = 0;
    if (lead >= 0xc2 && lead <= 0xdf) {
      more = 1;
    } else if (lead >= 0xe0 && lead <= 0xef) {
      more = 2;
      if (lead == 0xe0) low = 0xa0;
      if (lead == 0xed) high = 0x9f;
    } else if (lead >= 0xf0 && lead <= 0xf4) {
      more = 3;
      if (lead == 0xf0) low = 0x90;
      if (lead == 0xf4) high = 0x8f;
    } else {
      return at;
    }
    if (text.size() - at <= more) return at;
    for (std::size_t i = 1; i <= more; ++i) {
      auto const next = static_cast<unsigned char>(text[at + i]);
      if (next < low || next > high) return at;
      low = 0x80;
      high = 0xbf;
    }
    at += more + 1;
  }
  return std::string_view::npos;
}

/// Pre: a scalar value, not a surrogate.
inline void append_utf8(std::string& out, std::uint32_t point) {
  auto const put = [&out](std::uint32_t byte) { out += static_cast<char>(static_cast<unsigned char>(byte)); };
  if (point < 0x80) return put(point);
  if (point < 0x800) {
    put(0xc0U | (point >> 6U));
  } else {
    if (point < 0x10000) {
      put(0xe0U | (point >> 12U));
    } else {
      put(0xf0U | (point >> 18U));
      put(0x80U | ((point >> 12U) & 0x3fU));
    }
    put(0x80U | ((point >> 6U) & 0x3fU));
  }
  put(0x80U | (point & 0x3fU));
}

/// A name for people: in quotes, cut when long, and with nothing in it that ends a C string or moves a cursor.
[[nodiscard]] inline std::string quoted(std::string_view name) {
  constexpr std::size_t longest = 160;
  constexpr char const* digits = "0123456789abcdef";
  bool const utf8 = invalid_utf8_at(name) == std::string_view::npos;
  std::string_view shown = name.substr(0, longest);
  // Never end inside a sequence.
  while (utf8 && invalid_utf8_at(shown) != std::string_view::npos) shown.remove_suffix(1);
  std::string out = "\"";
  for (char const c : shown) {
    auto const byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte == 0x7f || (byte >= 0x80 && !utf8)) {
      out += "\\x";
      out += digits[byte >> 4U];
      out += digits[byte & 0xfU];
    } else {
      out += c;
    }
  }
  out += shown.size() < name.size() ? "...\"" : "\"";
  return out;
}

/// A name and where it stands: byte position or index.
using placed_name = std::pair<std::string_view, std::uint64_t>;

/// Two places that have the same name, the earlier one first. Sorted, not hashed: no input makes it quadratic.
[[nodiscard]] inline std::optional<std::pair<placed_name, placed_name>> find_repeated(std::vector<placed_name> names) {
  std::sort(names.begin(), names.end());
  auto const same = [](placed_name const& a, placed_name const& b) { return a.first == b.first; };
  auto const found = std::adjacent_find(names.begin(), names.end(), same);
  if (found == names.end()) return std::nullopt;
  return std::pair{*found, *(found + 1)};
}

}  // namespace spillway::inline v0::detail
