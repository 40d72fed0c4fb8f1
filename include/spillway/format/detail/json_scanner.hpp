// SPDX-License-Identifier: Apache-2.0
/// The tokens of JSON: white space, punctuation, words, numbers and strings, each refused with its place.
#pragma once

#include <spillway/core/bytes.hpp>
#include <spillway/core/error.hpp>
#include <spillway/format/detail/text.hpp>
#include <spillway/format/format_errc.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace spillway::inline v0 {

/// Where a text came from, for errors.
struct json_source {
  std::string_view where = "read_json";
  std::string_view path{};
  std::uint64_t offset = 0;  ///< of the text in that file
};

namespace detail {

/// Pre: `text` is UTF-8 and, as what `source` views, outlives the scanner.
class json_scanner {
 public:
  json_scanner(std::string_view text, json_source source) : text_(text), source_(source) {}

  [[nodiscard]] std::size_t at() const noexcept { return at_; }
  [[nodiscard]] json_source const& source() const noexcept { return source_; }

  [[nodiscard]] bool at_end() noexcept {
    skip_space();
    return at_ == text_.size();
  }
  /// What comes next after white space, not yet taken.
  char next() {
    if (at_end()) fail(format_errc::json_unexpected_end, at_);
    return text_[at_];
  }
  bool take(char wanted) {
    if (next() != wanted) return false;
    ++at_;
    return true;
  }
  void expect(char wanted, char const* otherwise) {
    if (!take(wanted)) fail(format_errc::json_unexpected_character, at_, otherwise);
  }
  void word(std::string_view wanted) {
    auto const rest = text_.substr(at_, wanted.size());
    if (rest != wanted) {
      bool const cut = rest == wanted.substr(0, rest.size());
      fail(cut ? format_errc::json_unexpected_end : format_errc::json_unexpected_character, at_);
    }
    at_ += wanted.size();
  }
  [[nodiscard]] std::uint64_t number() {
    auto const from = at_;
    std::uint64_t value = 0;
    bool fits = true;
    for (; at_ < text_.size() && text_[at_] >= '0' && text_[at_] <= '9'; ++at_) {
      fits = fits && checked_multiply(value, 10, value) &&
             checked_add(value, static_cast<std::uint64_t>(text_[at_] - '0'), value);
    }
    bool const leading_zero = text_[from] == '0' && at_ - from > 1;
    bool const goes_on = at_ < text_.size() && std::string_view("-.eE").find(text_[at_]) != std::string_view::npos;
    if (leading_zero || goes_on) fail(format_errc::json_not_u64, from);
    if (!fits) fail(format_errc::json_number_too_large, from);
    return value;
  }
  [[nodiscard]] std::string string() {
    std::string out;
    for (++at_;;) {
      auto const from = at_;
      while (at_ < text_.size() && stands_for_itself(text_[at_])) ++at_;
      out += text_.substr(from, at_ - from);
      if (at_ == text_.size()) fail(format_errc::json_unexpected_end, at_);
      if (text_[at_] == '"') break;
      if (text_[at_] != '\\') fail(format_errc::json_control_character, at_);
      escape(out);
    }
    ++at_;
    return out;
  }
  /// A key and its colon. Until leave_member() it is named by every error.
  [[nodiscard]] std::string enter_member() {
    if (next() != '"') fail(format_errc::json_unexpected_character, at_, "wanted a key");
    auto const from = at_;
    std::string key = string();
    trail_.push_back(text_.substr(from + 1, at_ - from - 2));
    expect(':', "wanted ':'");
    return key;
  }
  void leave_member() noexcept { trail_.pop_back(); }

  [[noreturn]] void fail(format_errc code, std::uint64_t position, std::string detail = {}) const {
    for (std::size_t i = 0; i < trail_.size(); ++i) {
      if (i != 0) {
        detail += '.';
      } else {
        detail += detail.empty() ? "in " : " in ";
      }
      detail += quoted(trail_[i]);
    }
    throw error{code,
                {.where = std::string(source_.where),
                 .path = std::string(source_.path),
                 .offset = source_.offset + position,
                 .detail = std::move(detail)}};
  }

 private:
  void skip_space() noexcept {
    while (at_ < text_.size() && is_space(text_[at_])) ++at_;
  }
  static bool is_space(char c) noexcept { return c == ' ' || c == '\n' || c == '\t' || c == '\r'; }
  static bool stands_for_itself(char c) noexcept {
    return c != '"' && c != '\\' && static_cast<unsigned char>(c) >= 0x20;
  }
  void escape(std::string& out) {
    constexpr std::string_view letters = "\"\\/bfnrt";
    constexpr std::string_view meanings = "\"\\/\b\f\n\r\t";
    auto const from = at_++;
    if (at_ == text_.size()) fail(format_errc::json_unexpected_end, at_);
    char const letter = text_[at_++];
    if (letter != 'u') {
      auto const found = letters.find(letter);
      if (found == std::string_view::npos) fail(format_errc::json_bad_escape, from);
      out += meanings[found];
      return;
    }
    std::uint32_t point = four_digits(from);
    if (point >= 0xd800 && point <= 0xdfff) {
      bool const pair = point <= 0xdbff && text_.substr(at_, 2) == "\\u";
      if (pair) at_ += 2;
      std::uint32_t const low = pair ? four_digits(at_ - 2) : 0;
      if (low < 0xdc00 || low > 0xdfff) fail(format_errc::json_lone_surrogate, from);
      point = 0x10000 + ((point - 0xd800) << 10U) + (low - 0xdc00);
    }
    append_utf8(out, point);
  }
  std::uint32_t four_digits(std::size_t escape_begin) {
    std::uint32_t value = 0;
    for (int i = 0; i < 4; ++i, ++at_) {
      if (at_ == text_.size()) fail(format_errc::json_unexpected_end, at_);
      auto const digit = std::string_view("0123456789abcdefABCDEF").find(text_[at_]);
      if (digit == std::string_view::npos) fail(format_errc::json_bad_escape, escape_begin);
      value = value * 16 + static_cast<std::uint32_t>(digit < 16 ? digit : digit - 6);
    }
    return value;
  }

  std::string_view text_;
  json_source source_;
  std::size_t at_ = 0;
  std::vector<std::string_view> trail_;  ///< keys of the open members, as spelt in the text
};

}  // namespace detail
}  // namespace spillway::inline v0
