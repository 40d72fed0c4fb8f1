// SPDX-License-Identifier: Apache-2.0
#include <spillway/format/json_reader.hpp>
#include <spillway/format/json_value.hpp>
#include <spillway/format/json_writer.hpp>

#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "support/catch.hpp"

namespace {

using namespace std::string_view_literals;
using spillway::format_errc;
using spillway::json_limits;
using spillway::json_source;
using spillway::json_value;
using spillway::read_json;
using spillway::write_json;

std::optional<spillway::error> refusal(std::string_view text, json_limits limits = {}, json_source source = {}) {
  try {
    static_cast<void>(read_json(text, limits, source));
  } catch (spillway::error const& refused) {
    return refused;
  }
  return std::nullopt;
}

void check_refused(std::string_view text, format_errc code, std::uint64_t offset, json_limits limits = {}) {
  CAPTURE(text);
  auto const refused = refusal(text, limits);
  REQUIRE(refused);
  CHECK(refused->code() == code);
  CHECK(refused->about().offset == offset);
}

bool mentions(spillway::error const& refused, std::string_view part) {
  return std::string_view(refused.what()).find(part) != std::string_view::npos;
}

std::string string_in(std::string_view text) {
  auto const value = read_json(text);
  REQUIRE(value.get_if<std::string>() != nullptr);
  return *value.get_if<std::string>();
}

/// The same document, as far as nlohmann::json can say.
bool same(json_value const& ours, nlohmann::ordered_json const& theirs) {
  if (auto const* value = ours.get_if<bool>()) return theirs.is_boolean() && theirs.get<bool>() == *value;
  if (auto const* value = ours.get_if<std::uint64_t>()) {
    return theirs.is_number_unsigned() && theirs.get<std::uint64_t>() == *value;
  }
  if (auto const* value = ours.get_if<std::string>()) return theirs.is_string() && theirs.get<std::string>() == *value;
  if (auto const* elements = ours.get_if<json_value::array>()) {
    if (!theirs.is_array() || theirs.size() != elements->size()) return false;
    for (std::size_t i = 0; i < elements->size(); ++i) {
      if (!same((*elements)[i], theirs[i])) return false;
    }
    return true;
  }
  if (auto const* members = ours.get_if<json_value::object>()) {
    if (!theirs.is_object() || theirs.size() != members->size()) return false;
    auto other = theirs.begin();
    for (auto const& member : *members) {
      if (member.key != other.key() || !same(member.value, other.value())) return false;
      ++other;
    }
    return true;
  }
  return theirs.is_null();
}

std::string random_text(std::mt19937& engine) {
  static std::vector<std::string> const pieces = {"a",
                                                  "Z",
                                                  "0",
                                                  "/",
                                                  "\"",
                                                  "\\",
                                                  "\n",
                                                  "\t",
                                                  std::string(1, '\0'),
                                                  "\x1f",
                                                  "\x7f",
                                                  "\xc3\xa9",
                                                  "\xe2\x82\xac",
                                                  "\xed\x9f\xbf",
                                                  "\xee\x80\x80",
                                                  "\xef\xbf\xbf",
                                                  "\xf0\x90\x80\x80",
                                                  "\xf4\x8f\xbf\xbf",
                                                  "layer.",
                                                  "weight"};
  std::string out;
  for (auto n = engine() % 8; n != 0; --n) out += pieces[engine() % pieces.size()];
  return out;
}

nlohmann::ordered_json random_document(std::mt19937& engine, int depth) {
  switch (engine() % (depth > 0 ? 7 : 5)) {
    case 0:
      return nullptr;
    case 1:
      return engine() % 2 == 0;
    case 2:
      return (std::uint64_t{engine()} << 32U | engine()) >> (engine() % 64);
    case 3:
    case 4:
      return random_text(engine);
    case 5: {
      auto out = nlohmann::ordered_json::array();
      for (auto n = engine() % 5; n != 0; --n) out.push_back(random_document(engine, depth - 1));
      return out;
    }
    default: {
      auto out = nlohmann::ordered_json::object();
      for (auto n = engine() % 5; n != 0; --n) out[random_text(engine)] = random_document(engine, depth - 1);
      return out;
    }
  }
}

}  // namespace

TEST_CASE("json_reader: reads every kind of value") {
  auto const value = read_json(R"( {"a":[null,true,false,0,18446744073709551615,"x",[],{}], "b" : {"c":7}} )");
  auto const* a = value.find("a");
  REQUIRE(a != nullptr);
  auto const* elements = a->get_if<json_value::array>();
  REQUIRE(elements != nullptr);
  REQUIRE(elements->size() == 8);
  CHECK((*elements)[0].get_if<std::nullptr_t>() != nullptr);
  CHECK(*(*elements)[1].get_if<bool>());
  CHECK_FALSE(*(*elements)[2].get_if<bool>());
  CHECK(*(*elements)[3].get_if<std::uint64_t>() == 0);
  CHECK(*(*elements)[4].get_if<std::uint64_t>() == UINT64_MAX);
  CHECK(*(*elements)[5].get_if<std::string>() == "x");
  CHECK((*elements)[6].get_if<json_value::array>()->empty());
  CHECK((*elements)[7].get_if<json_value::object>()->empty());
  CHECK(*value.find("b")->find("c")->get_if<std::uint64_t>() == 7);
  CHECK(value.find("c") == nullptr);
  CHECK(a->find("c") == nullptr);
}

TEST_CASE("json_reader: members keep the order of the text and values know their place") {
  auto const value = read_json(R"({"z":1, "a":22})");
  auto const* members = value.get_if<json_value::object>();
  REQUIRE(members != nullptr);
  CHECK((*members)[0].key == "z");
  CHECK((*members)[1].key == "a");
  CHECK((*members)[1].value.position == 12);
}

TEST_CASE("json_reader: white space around the value is JSON's four characters and no other") {
  CHECK_FALSE(refusal(" \t\r\n{} \t\r\n"));
  check_refused("\v{}", format_errc::json_unexpected_character, 0);
  check_refused("\xc2\xa0{}", format_errc::json_unexpected_character, 0);
  check_refused("{}\v", format_errc::json_trailing_content, 2);
}

TEST_CASE("json_reader: text after the value is refused, NUL too") {
  check_refused("{}\0"sv, format_errc::json_trailing_content, 2);
  check_refused("{} {}", format_errc::json_trailing_content, 3);
  check_refused("{}}", format_errc::json_trailing_content, 2);
  check_refused("nullx", format_errc::json_trailing_content, 4);
}

TEST_CASE("json_reader: an empty text and every cut of a text end too early") {
  check_refused("", format_errc::json_unexpected_end, 0);
  check_refused(" \n ", format_errc::json_unexpected_end, 3);
  auto const whole = R"({"a":[true,null,false,{"b":"c\n\u00e9\ud83d\ude00"}]})"sv;
  REQUIRE_FALSE(refusal(whole));
  for (std::size_t n = 0; n < whole.size(); ++n) {
    // A high surrogate followed by nothing, or by half of an escape, is alone.
    auto const refused = refusal(whole.substr(0, n));
    CAPTURE(whole.substr(0, n));
    REQUIRE(refused);
    CHECK((refused->code() == format_errc::json_unexpected_end || refused->code() == format_errc::json_lone_surrogate));
  }
}

TEST_CASE("json_reader: what the grammar does not have is refused where it stands") {
  check_refused("{/**/}", format_errc::json_unexpected_character, 1);
  check_refused("[1,]", format_errc::json_unexpected_character, 3);
  check_refused("[,1]", format_errc::json_unexpected_character, 1);
  check_refused("[1 2]", format_errc::json_unexpected_character, 3);
  check_refused("[1}", format_errc::json_unexpected_character, 2);
  check_refused(R"({"a":1,})", format_errc::json_unexpected_character, 7);
  check_refused(R"({"a" 1})", format_errc::json_unexpected_character, 5);
  check_refused(R"({"a":})", format_errc::json_unexpected_character, 5);
  check_refused(R"({a:1})", format_errc::json_unexpected_character, 1);
  check_refused(R"({1:1})", format_errc::json_unexpected_character, 1);
  check_refused("{'a':1}", format_errc::json_unexpected_character, 1);
  check_refused("NaN", format_errc::json_unexpected_character, 0);
  check_refused("Infinity", format_errc::json_unexpected_character, 0);
  check_refused("[+1]", format_errc::json_unexpected_character, 1);
  check_refused("[tru]", format_errc::json_unexpected_character, 1);
  check_refused("True", format_errc::json_unexpected_character, 0);
}

TEST_CASE("json_reader: a byte order mark is refused by name") {
  check_refused("\xef\xbb\xbf{}", format_errc::json_byte_order_mark, 0);
}

TEST_CASE("json_reader: text that is not UTF-8 is refused at its first bad byte") {
  check_refused("\"ab\xff\"", format_errc::json_not_utf8, 3);
  check_refused("\"\x80\"", format_errc::json_not_utf8, 1);
  check_refused("\"\xc0\xaf\"", format_errc::json_not_utf8, 1);          // overlong, two bytes
  check_refused("\"\xc1\xbf\"", format_errc::json_not_utf8, 1);          // overlong, two bytes
  check_refused("\"\xe0\x9f\xbf\"", format_errc::json_not_utf8, 1);      // overlong, three
  check_refused("\"\xf0\x8f\xbf\xbf\"", format_errc::json_not_utf8, 1);  // overlong, four
  check_refused("\"\xed\xa0\x80\"", format_errc::json_not_utf8, 1);      // surrogate
  check_refused("\"\xed\xbf\xbf\"", format_errc::json_not_utf8, 1);      // surrogate
  check_refused("\"\xf4\x90\x80\x80\"", format_errc::json_not_utf8, 1);  // above U+10FFFF
  check_refused("\"\xf5\x80\x80\x80\"", format_errc::json_not_utf8, 1);
  check_refused("\"\xe2\x82\"", format_errc::json_not_utf8, 1);
  check_refused("\"\xf0\x9f\x98", format_errc::json_not_utf8, 1);  // cut at the end of the text
}

TEST_CASE("json_reader: the ends of every UTF-8 range are accepted") {
  for (auto const text :
       {"\x7f"sv, "\xc2\x80"sv, "\xdf\xbf"sv, "\xe0\xa0\x80"sv, "\xec\xbf\xbf"sv, "\xed\x80\x80"sv, "\xed\x9f\xbf"sv,
        "\xee\x80\x80"sv, "\xef\xbf\xbf"sv, "\xf0\x90\x80\x80"sv, "\xf3\xbf\xbf\xbf"sv, "\xf4\x8f\xbf\xbf"sv}) {
    CHECK(string_in("\"" + std::string(text) + "\"") == text);
  }
}

TEST_CASE("json_reader: escapes are decoded") {
  CHECK(string_in(R"("\"\\\/\b\f\n\r\t")") == "\"\\/\b\f\n\r\t");
  CHECK(string_in(R"("\u0041\u00e9\u20ac\uD83D\uDE00\udbff\udfff")") ==
        "A\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80\xf4\x8f\xbf\xbf");
  CHECK(string_in(R"("a\u0000b")") == "a\0b"sv);
}

TEST_CASE("json_reader: a bad escape is refused") {
  check_refused(R"("\x41")", format_errc::json_bad_escape, 1);
  check_refused(R"("\U0041")", format_errc::json_bad_escape, 1);
  check_refused(R"("\u00g1")", format_errc::json_bad_escape, 1);
  check_refused(R"("\u 041")", format_errc::json_bad_escape, 1);
  check_refused("\"\\\n\"", format_errc::json_bad_escape, 1);
}

TEST_CASE("json_reader: half of a surrogate pair is refused") {
  check_refused(R"("\ud800")", format_errc::json_lone_surrogate, 1);
  check_refused(R"("\udc00")", format_errc::json_lone_surrogate, 1);
  check_refused(R"("a\ud800\u0041")", format_errc::json_lone_surrogate, 2);
  check_refused(R"("\ud800\ud800")", format_errc::json_lone_surrogate, 1);
  check_refused(R"("\udc00\ud800")", format_errc::json_lone_surrogate, 1);
  check_refused(R"("\udc00\udc00")", format_errc::json_lone_surrogate, 1);
}

TEST_CASE("json_reader: a control character in a string must be escaped") {
  for (char c = 0; c < 0x20; ++c) check_refused(std::string("\"a") + c + "\"", format_errc::json_control_character, 2);
}

TEST_CASE("json_reader: a number is a u64 in plain decimal") {
  for (auto const* text :
       {"[-0]", "[-1]", "[01]", "[00]", "[8.0]", "[8e0]", "[8E0]", "[0.0]", "[1-2]", "[-]", "[-Infinity]"}) {
    check_refused(text, format_errc::json_not_u64, 1);
  }
  check_refused("[18446744073709551616]", format_errc::json_number_too_large, 1);
  check_refused("[99999999999999999999999999999]", format_errc::json_number_too_large, 1);
  check_refused("[184467440737095516160]", format_errc::json_number_too_large, 1);  // ten times 2^64: wraps to 0
  check_refused("[99999999999999999999999999999.5]", format_errc::json_not_u64, 1);
}

TEST_CASE("json_reader: a repeated key is refused with both places, however it is spelt") {
  check_refused(R"({"a":1,"a":2})", format_errc::json_duplicate_key, 7);
  check_refused(R"({"a":1,"b":2,"c":{"a":3},"\u0061":2})", format_errc::json_duplicate_key, 25);
  check_refused(R"({"x":{"":1,"":1}})", format_errc::json_duplicate_key, 11);
  auto const refused = refusal(R"({"x":{"k":1, "k":1}})");
  REQUIRE(refused);
  CHECK(mentions(*refused, "duplicate"));
  CHECK(mentions(*refused, R"(at offset 13: "k", first at offset 6 in "x")"));
  CHECK_FALSE(refusal(R"({"a":{"a":1},"b":{"a":1}})"));
}

TEST_CASE("json_reader: nesting stops at the limit") {
  CHECK_FALSE(refusal(std::string(16, '[') + std::string(16, ']')));
  check_refused(std::string(17, '[') + std::string(17, ']'), format_errc::json_too_deep, 16);
  check_refused(std::string(1'000'000, '['), format_errc::json_too_deep, 16);
  check_refused(R"([{"a":[]}])", format_errc::json_too_deep, 6, {.depth = 2});
  CHECK_FALSE(refusal(R"([{"a":1}])", {.depth = 2}));
  CHECK_FALSE(refusal(R"([{},{},{},[],[],[],{"a":{}}])", {.depth = 3}));  // side by side is not inside
  check_refused("[]", format_errc::json_too_deep, 0, {.depth = 0});
  CHECK_FALSE(refusal(std::string(255, '[') + std::string(255, ']'), {.depth = 255}));
}

TEST_CASE("json_reader: size and number of values stop at their limits") {
  CHECK_FALSE(refusal("[1,2]", {.size = spillway::bytes{5}, .values = 3}));
  check_refused("[1,2] ", format_errc::json_too_large, 0, {.size = spillway::bytes{5}});
  check_refused("[1,2,3]", format_errc::json_too_many_values, 5, {.values = 3});
}

TEST_CASE("json_reader: an error names the source, the path and the keys, and counts from the start of the file") {
  auto const refused =
      refusal(R"({"layers":[{"w":-1}]})", {}, {.where = "manifest", .path = "/ckpt/MANIFEST.json", .offset = 100});
  REQUIRE(refused);
  CHECK(refused->about().where == "manifest");
  CHECK(refused->about().path == "/ckpt/MANIFEST.json");
  CHECK(refused->about().offset == 116);
  CHECK(refused->about().detail == R"(in "layers"."w")");
}

TEST_CASE("json_reader: a long key is cut in messages, never inside a character") {
  std::string key(159, 'k');
  key += "\xe2\x82\xac\xe2\x82\xac";
  auto const refused = refusal("{\"" + key + "\":-1}");
  REQUIRE(refused);
  CHECK(refused->about().detail == "in \"" + std::string(159, 'k') + "...\"");
}

TEST_CASE("json_writer: bytes are a function of the value") {
  json_value const value{
      json_value::object{{"z", {1U}},
                         {"a", {json_value::array{{nullptr}, {true}, {false}, {UINT64_MAX}, {"\xc3\xa9/"}}}},
                         {"", {json_value::object{}}},
                         {"e", {json_value::array{}}}}};
  CHECK(write_json(value) == "{\"z\":1,\"a\":[null,true,false,18446744073709551615,\"\xc3\xa9/\"],\"\":{},\"e\":[]}");
}

TEST_CASE("json_writer: escapes what must be escaped and nothing else") {
  CHECK(write_json({std::string("\"\\/\b\f\n\r\t\x01\x1f\x7f\0"sv)}) ==
        "\"\\\"\\\\/\\b\\f\\n\\r\\t\\u0001\\u001f\x7f\\u0000\"");
}

TEST_CASE("json_writer: refuses what the reader would refuse") {
  auto const code_of = [](json_value const& value) {
    try {
      static_cast<void>(write_json(value));
    } catch (spillway::error const& refused) {
      return refused.code();
    }
    return std::error_code{};
  };
  CHECK(code_of({"\xff"}) == format_errc::json_not_utf8);
  CHECK(code_of({json_value::object{{"\xed\xa0\x80", {1U}}}}) == format_errc::json_not_utf8);
  CHECK(code_of({json_value::array{{json_value::object{{"k", {1U}}, {"l", {1U}}, {"k", {2U}}}}}}) ==
        format_errc::json_duplicate_key);
}

TEST_CASE("append_json_string: leaves the text alone when it refuses") {
  std::string out = "kept";
  CHECK_THROWS_AS(spillway::append_json_string(out, "\xff"), spillway::error);
  CHECK(out == "kept");
}

TEST_CASE("json: agrees with nlohmann::json on random documents, both ways") {
  std::mt19937 engine(20240607);
  for (int round = 0; round < 3000; ++round) {
    auto const theirs = random_document(engine, 5);
    for (auto const& text : {theirs.dump(), theirs.dump(2), theirs.dump(-1, ' ', true), theirs.dump(1, '\t', true)}) {
      CAPTURE(text);
      auto const ours = read_json(text);
      REQUIRE(same(ours, theirs));
      REQUIRE(same(ours, nlohmann::ordered_json::parse(write_json(ours))));
      REQUIRE(write_json(read_json(write_json(ours))) == write_json(ours));
    }
  }
}

TEST_CASE(
    "json_reader: whatever a damaged document becomes, nlohmann::json accepts all that we accept, as the same value") {
  std::mt19937 engine(7);
  static constexpr std::string_view spare = "{}[]\",:\\u0019aeE.-+ntf \n\x01\xc3\xa9\xff";
  int accepted = 0;
  for (int round = 0; round < 20'000; ++round) {
    auto text = random_document(engine, 3).dump(engine() % 2 == 0 ? -1 : 1, ' ', engine() % 2 == 0);
    for (auto n = engine() % 3 + 1; n != 0 && !text.empty(); --n) {
      auto const at = engine() % text.size();
      switch (engine() % 3) {
        case 0:
          text[at] = spare[engine() % spare.size()];
          break;
        case 1:
          text.erase(at, engine() % 4 + 1);
          break;
        default:
          text.insert(at, 1, spare[engine() % spare.size()]);
      }
    }
    try {
      auto const ours = read_json(text);
      CAPTURE(text);
      REQUIRE(same(ours, nlohmann::ordered_json::parse(text)));
      ++accepted;
    } catch (spillway::error const& refused) {
      REQUIRE(std::string_view(refused.code().category().name()) == "spillway.format");
    }
  }
  CHECK(accepted > 1000);
}

TEST_CASE("format_errc: every code has a message and a stable value") {
  std::set<std::string> messages;
  int codes = 0;
  for (int value = 1; value < 400; ++value) {
    auto const message = std::error_code(format_errc(value)).message();
    if (message.find("unknown spillway.format error") == 0) continue;
    ++codes;
    messages.insert(message);
  }
  CHECK(messages.size() == static_cast<std::size_t>(codes));
  CHECK(std::string_view(make_error_code(format_errc::generation_open).category().name()) == "spillway.format");
  CHECK(static_cast<int>(format_errc::json_duplicate_key) == 14);
  CHECK(static_cast<int>(format_errc::generation_open) == 101);
  CHECK(static_cast<int>(format_errc::trailing_bytes) == 129);
}
