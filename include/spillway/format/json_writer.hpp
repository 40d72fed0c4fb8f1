// SPDX-License-Identifier: Apache-2.0
/// A JSON writer whose output is a function of the value alone, byte for byte.
#pragma once

#include <spillway/core/error.hpp>
#include <spillway/format/detail/text.hpp>
#include <spillway/format/format_errc.hpp>
#include <spillway/format/json_value.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace spillway::inline v0 {

/// Append `text` as a JSON string. Quote, backslash and what is below U+0020 are escaped, in the short form where there
/// is one; the rest stays as it is.
/// Errors   format_errc::json_not_utf8, and then `out` is unchanged.
/// Threads  safe on distinct strings.
inline void append_json_string(std::string& out, std::string_view text) {
  auto const invalid = detail::invalid_utf8_at(text);
  if (invalid != std::string_view::npos) {
    throw error{format_errc::json_not_utf8, {.where = "write_json", .offset = invalid, .detail = detail::quoted(text)}};
  }
  constexpr std::string_view meanings = "\"\\\b\f\n\r\t";
  constexpr std::string_view letters = "\"\\bfnrt";
  constexpr char const* digits = "0123456789abcdef";
  out += '"';
  for (char const c : text) {
    auto const byte = static_cast<unsigned char>(c);
    if (byte >= 0x20 && c != '"' && c != '\\') {
      out += c;
      continue;
    }
    auto const found = meanings.find(c);
    if (found != std::string_view::npos) {
      out += '\\';
      out += letters[found];
    } else {
      out += "\\u00";
      out += digits[byte >> 4U];
      out += digits[byte & 0xfU];
    }
  }
  out += '"';
}

namespace detail {
inline void append_json(std::string& out, json_value const& value);

struct json_appender {
  std::string& out;

  void operator()(std::nullptr_t) const { out += "null"; }
  void operator()(bool value) const { out += value ? "true" : "false"; }
  void operator()(std::uint64_t value) const { out += std::to_string(value); }
  void operator()(std::string const& value) const { append_json_string(out, value); }
  void operator()(json_value::array const& elements) const {
    out += '[';
    for (std::size_t i = 0; i < elements.size(); ++i) {
      if (i != 0) out += ',';
      append_json(out, elements[i]);
    }
    out += ']';
  }
  void operator()(json_value::object const& members) const {
    std::vector<placed_name> keys;
    out += '{';
    for (std::size_t i = 0; i < members.size(); ++i) {
      if (i != 0) out += ',';
      append_json_string(out, members[i].key);
      out += ':';
      append_json(out, members[i].value);
      keys.emplace_back(members[i].key, i);
    }
    out += '}';
    if (auto const repeated = find_repeated(std::move(keys))) {
      throw error{format_errc::json_duplicate_key, {.where = "write_json", .detail = quoted(repeated->first.first)}};
    }
  }
};

inline void append_json(std::string& out, json_value const& value) { std::visit(json_appender{out}, value.data); }
}  // namespace detail

/// The value as text: no white space, members in the order given, numbers in plain decimal.
/// Errors   format_errc::json_not_utf8, format_errc::json_duplicate_key: what read_json would refuse is not written.
/// Threads  safe.
[[nodiscard]] inline std::string write_json(json_value const& value) {
  std::string out;
  detail::append_json(out, value);
  return out;
}

}  // namespace spillway::inline v0
