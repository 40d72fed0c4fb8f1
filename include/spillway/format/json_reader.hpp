// SPDX-License-Identifier: Apache-2.0
/// A strict JSON reader for text that others wrote: it refuses what it does not know, and says where.
#pragma once

#include <spillway/core/bytes.hpp>
#include <spillway/core/config.hpp>
#include <spillway/format/detail/json_scanner.hpp>
#include <spillway/format/detail/text.hpp>
#include <spillway/format/format_errc.hpp>
#include <spillway/format/json_value.hpp>

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace spillway::inline v0 {

/// What a text may demand of the reader.
struct json_limits {
  bytes size{100'000'000};  ///< of the text
  std::uint8_t depth = 16;  ///< arrays and objects inside each other, the outermost one counted
  std::uint64_t values =
      1ULL << 24U;  ///< members' and elements' values, containers too: each costs 48 B in a json_value
};

enum class json_kind : std::uint8_t { null, boolean, number, string, array, object };

/// Reads a text value by value, so that a caller who knows the form keeps only what it wants; `read_json` makes a
/// document of it. The text is UTF-8 without a byte order mark. Numbers are u64 in plain decimal. Keys, compared as
/// decoded, are unique in their object. White space may stand around the outermost value; nothing else may. Not a JSON
/// library: no floats, no lenient mode.
/// Errors   every function: error with a format_errc, its offset the byte in the file, its detail the keys that lead
///          there. After one, only destroy the reader.
/// Threads  one at a time.
/// Cost     one pass to check UTF-8, one to read; memory for the keys of the open objects only.
class json_reader {
 public:
  /// Pre: `text` and what `source` views outlive the reader.
  explicit json_reader(std::string_view text, json_limits limits = {}, json_source source = {})
      : scan_(text, source), limits_(limits) {
    if (text.size() > limits.size.count) {
      scan_.fail(format_errc::json_too_large, 0,
                 std::to_string(text.size()) + " B, limit " + std::to_string(limits.size.count) + " B");
    }
    if (text.substr(0, 3) == "\xef\xbb\xbf") scan_.fail(format_errc::json_byte_order_mark, 0);
    auto const invalid = detail::invalid_utf8_at(text);
    if (invalid != std::string_view::npos) scan_.fail(format_errc::json_not_utf8, invalid);
  }

  /// The kind of the value that comes next.
  [[nodiscard]] json_kind peek() {
    char const c = scan_.next();
    if (c == '{') return json_kind::object;
    if (c == '[') return json_kind::array;
    if (c == '"') return json_kind::string;
    if (c == '-' || (c >= '0' && c <= '9')) return json_kind::number;
    if (c == 't' || c == 'f') return json_kind::boolean;
    if (c == 'n') return json_kind::null;
    scan_.fail(format_errc::json_unexpected_character, scan_.at(), "wanted a value");
  }
  /// Byte of the text at which the peeked value begins.
  [[nodiscard]] std::uint64_t position() const noexcept { return scan_.at(); }

  /// Each reads the next value. Pre: peek() says that kind.
  void null() {
    begin(json_kind::null);
    scan_.word("null");
  }
  [[nodiscard]] bool boolean() {
    begin(json_kind::boolean);
    bool const value = scan_.next() == 't';
    scan_.word(value ? "true" : "false");
    return value;
  }
  [[nodiscard]] std::uint64_t u64() {
    begin(json_kind::number);
    return scan_.number();
  }
  [[nodiscard]] std::string string() {
    begin(json_kind::string);
    return scan_.string();
  }
  /// `element()` is called once an element and reads it.
  template <class Element>
  void array(Element element) {
    open(json_kind::array, '[');
    if (!scan_.take(']')) {
      do {
        element();
      } while (scan_.take(','));
      scan_.expect(']', "wanted ',' or ']'");
    }
    --depth_;
  }
  /// `member(std::string key)` is called once a member and reads its value. Repeated keys are found at the closing
  /// brace.
  template <class Member>
  void object(Member member) {
    open(json_kind::object, '{');
    std::vector<std::pair<std::string, std::uint64_t>> keys;
    if (!scan_.take('}')) {
      do {
        static_cast<void>(scan_.next());
        auto const at = scan_.at();
        std::string key = scan_.enter_member();
        keys.emplace_back(key, at);
        member(std::move(key));
        scan_.leave_member();
      } while (scan_.take(','));
      scan_.expect('}', "wanted ',' or '}'");
    }
    --depth_;
    if (keys.size() > 1) refuse_repeated({keys.begin(), keys.end()});
  }
  /// The text has to end here.
  void finish() {
    if (!scan_.at_end()) scan_.fail(format_errc::json_trailing_content, scan_.at());
  }

  /// Throw as the reader itself does: for callers who find that a well-formed value makes no sense.
  [[noreturn]] void fail(format_errc code, std::uint64_t position, std::string detail = {}) const {
    scan_.fail(code, position, std::move(detail));
  }

 private:
  void begin(json_kind kind) {
    SPILLWAY_EXPECTS(peek() == kind);
    if (++values_ > limits_.values) scan_.fail(format_errc::json_too_many_values, scan_.at());
  }
  void open(json_kind kind, char bracket) {
    begin(kind);
    if (depth_ == limits_.depth) scan_.fail(format_errc::json_too_deep, scan_.at());
    ++depth_;
    scan_.take(bracket);
  }
  void refuse_repeated(std::vector<detail::placed_name> keys) const {
    auto const repeated = detail::find_repeated(std::move(keys));
    if (!repeated) return;
    auto const& [first, second] = *repeated;
    scan_.fail(
        format_errc::json_duplicate_key, second.second,
        detail::quoted(first.first) + ", first at offset " + std::to_string(scan_.source().offset + first.second));
  }

  detail::json_scanner scan_;
  json_limits limits_;
  std::uint64_t values_ = 0;
  unsigned depth_ = 0;
};

namespace detail {
inline json_value read_json_value(json_reader& reader) {
  json_kind const kind = reader.peek();
  json_value out;
  out.position = reader.position();
  switch (kind) {
    case json_kind::null:
      reader.null();
      break;
    case json_kind::boolean:
      out.data = reader.boolean();
      break;
    case json_kind::number:
      out.data = reader.u64();
      break;
    case json_kind::string:
      out.data = reader.string();
      break;
    case json_kind::array: {
      auto& elements = out.data.emplace<json_value::array>();
      reader.array([&] { elements.push_back(read_json_value(reader)); });
      break;
    }
    case json_kind::object: {
      auto& members = out.data.emplace<json_value::object>();
      reader.object([&](std::string key) { members.push_back({std::move(key), read_json_value(reader)}); });
      break;
    }
  }
  return out;
}
}  // namespace detail

/// A whole text as a document, under the rules of json_reader.
/// Errors   error with a format_errc; its offset is the byte, its detail the keys that lead there.
/// Threads  safe.
/// Cost     nothing is allocated before the size is checked; at most 48 B a value plus the strings.
[[nodiscard]] inline json_value read_json(std::string_view text, json_limits limits = {}, json_source source = {}) {
  json_reader reader(text, limits, source);
  json_value out = detail::read_json_value(reader);
  reader.finish();
  return out;
}

}  // namespace spillway::inline v0
