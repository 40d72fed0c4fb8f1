// SPDX-License-Identifier: Apache-2.0
#include <spillway/format/safetensors.hpp>
#include <spillway/format/safetensors_layout.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "support/catch.hpp"

namespace {

using namespace std::string_view_literals;
using spillway::bytes;
using spillway::dtype;
using spillway::format_errc;
using spillway::parse_safetensors_header;
using spillway::safetensors_header;
using spillway::safetensors_header_length;
using spillway::safetensors_layout;
using spillway::safetensors_limits;
using spillway::safetensors_tensor;

std::vector<std::byte> bytes_of(std::string_view text) {
  auto const view = std::as_bytes(std::span(text));
  return {view.begin(), view.end()};
}

std::string length_field(std::uint64_t length) {
  std::string out;
  for (unsigned i = 0; i < 8; ++i) out += static_cast<char>(static_cast<unsigned char>(length >> (8 * i)));
  return out;
}

/// 8 + N bytes.
std::vector<std::byte> head(std::string_view text) { return bytes_of(length_field(text.size()) + std::string(text)); }

safetensors_header parse(std::string_view text, std::uint64_t data, safetensors_limits limits = {}) {
  auto const first = head(text);
  return parse_safetensors_header(first, first.size() + data, limits, "model.safetensors");
}

template <class Call>
std::optional<spillway::error> refusal_of(Call call) {
  try {
    call();
  } catch (spillway::error const& refused) {
    return refused;
  }
  return std::nullopt;
}

bool mentions(spillway::error const& refused, std::string_view part) {
  return std::string_view(refused.what()).find(part) != std::string_view::npos;
}

/// A file with this header and so much data is refused with that code, and the message names the path and `part`.
void check_refused(std::string_view text, std::uint64_t data, format_errc code, std::string_view part = {},
                   safetensors_limits limits = {}) {
  CAPTURE(text);
  auto const refused = refusal_of([&] { static_cast<void>(parse(text, data, limits)); });
  REQUIRE(refused);
  CAPTURE(refused->what());
  CHECK(refused->code() == code);
  CHECK(refused->about().path == "model.safetensors");
  CHECK(mentions(*refused, "model.safetensors"));
  CHECK(mentions(*refused, part));
}

void check_length_refused(std::uint64_t length, std::uint64_t file_size, std::error_code code,
                          safetensors_limits limits = {}) {
  CAPTURE(length, file_size);
  auto const field = bytes_of(length_field(length));
  auto const first = std::span(field).first<8>();
  auto const refused =
      refusal_of([&] { static_cast<void>(safetensors_header_length(first, file_size, limits, "model.safetensors")); });
  REQUIRE(refused);
  CHECK(refused->code() == code);
  CHECK(mentions(*refused, "model.safetensors"));
  // The whole parse says the same: no caller can go around it.
  auto const parsed =
      refusal_of([&] { static_cast<void>(parse_safetensors_header(field, file_size, limits, "model.safetensors")); });
  REQUIRE(parsed);
  CHECK(parsed->code() == code);
}

void check_write_refused(std::vector<safetensors_tensor> const& tensors, std::error_code code, std::string_view part,
                         spillway::safetensors_metadata metadata = {},
                         spillway::safetensors_layout_options options = {}) {
  auto const refused = refusal_of([&] { safetensors_layout const layout(tensors, std::move(metadata), options); });
  REQUIRE(refused);
  CAPTURE(refused->what());
  CHECK(refused->code() == code);
  CHECK(mentions(*refused, part));
}

/// What the strict reader makes of a layout has to be what the layout says.
void check_reads_back(safetensors_layout const& layout, safetensors_limits limits = {}) {
  auto const& header = layout.header();
  auto const first = layout.header_bytes();
  REQUIRE(bytes{first.size()} == header.data_begin);
  CHECK(safetensors_header_length(first.first<8>(), header.file_size.count, limits) == first.size() - 8);
  CHECK(parse_safetensors_header(first, header.file_size.count, limits) == header);
}

std::string text_of(safetensors_layout const& layout) {
  auto const all = layout.header_bytes();
  std::string out(all.size() - 8, '\0');
  std::memcpy(out.data(), all.data() + 8, out.size());
  return out;
}

std::string entry(std::string_view name, std::string_view type, std::string_view shape, std::uint64_t begin,
                  std::uint64_t end) {
  return "\"" + std::string(name) + R"(":{"dtype":")" + std::string(type) + R"(","shape":)" + std::string(shape) +
         R"(,"data_offsets":[)" + std::to_string(begin) + "," + std::to_string(end) + "]}";
}

}  // namespace

TEST_CASE("safetensors: a plain header is read") {
  auto const header = parse("{\"__metadata__\":{\"format\":\"pt\",\"a\":\"b\"}," + entry("w", "BF16", "[2,3]", 4, 16) +
                                "," + entry("b", "F32", "[1]", 0, 4) + "}",
                            16);
  CHECK(header.metadata == spillway::safetensors_metadata{{"format", "pt"}, {"a", "b"}});
  REQUIRE(header.entries.size() == 2);
  CHECK(header.entries[0] == spillway::safetensors_entry{"b", dtype::float32, {1}, 0, 4});  // rule 40: by offset
  CHECK(header.entries[1] == spillway::safetensors_entry{"w", dtype::bfloat16, {2, 3}, 4, 16});
  CHECK(header.file_size == header.data_begin + bytes{16});
}

TEST_CASE("safetensors: header lengths that lie are refused before anything is read (rules 1 2 3 5, X03)") {
  check_length_refused(0, 0, format_errc::file_too_short);
  check_length_refused(2, 7, format_errc::file_too_short);
  check_length_refused(UINT64_MAX, 1000, format_errc::header_too_large);
  check_length_refused(UINT64_MAX - 7, 1000, format_errc::header_too_large);
  check_length_refused(1ULL << 63U, 1000, format_errc::header_too_large);
  check_length_refused(100'000'001, 1ULL << 40U, format_errc::header_too_large);
  check_length_refused(1000 - 7, 1000, format_errc::header_past_end);
  check_length_refused(1, 8, format_errc::header_past_end);
  check_length_refused(100'000'000, 100'000'007, format_errc::header_past_end);
  check_length_refused(17, 1000, format_errc::header_too_large, {.header = bytes{16}});
  check_length_refused(0, 8, format_errc::generation_open);
  check_length_refused(0, 1000, format_errc::generation_open);
  check_length_refused(1ULL << 63U, 1000, format_errc::header_past_end, {.header = bytes{UINT64_MAX}});
  check_length_refused(UINT64_MAX, UINT64_MAX, format_errc::header_past_end, {.header = bytes{UINT64_MAX}});
  check_refused("{", 0, format_errc::json_unexpected_end);
  check_refused("x", 1000, format_errc::json_unexpected_character);

  auto const field = bytes_of(length_field(100'000'000));
  CHECK(safetensors_header_length(std::span(field).first<8>(), 100'000'008) == 100'000'000);
}

TEST_CASE("safetensors: less text than the header length says is a short transfer, not a read past the end") {
  auto const first = head("{}");
  for (std::size_t given = 0; given < first.size(); ++given) {
    auto const refused =
        refusal_of([&] { static_cast<void>(parse_safetensors_header(std::span(first).first(given), 10)); });
    REQUIRE(refused);
    CHECK(refused->code() == spillway::errc::short_transfer);
  }
  CHECK(parse_safetensors_header(first, 10).entries.empty());
}

TEST_CASE("safetensors: the data may follow in the same span") {
  auto file = head("{" + entry("a", "U8", "[3]", 0, 3) + "}");
  auto const begin = file.size();
  file.resize(begin + 3);
  auto const header = parse_safetensors_header(file, file.size());
  CHECK(header.data_begin.count == begin);
}

TEST_CASE("safetensors: text that is no JSON is refused (rules 4 5 8 9 12 13)") {
  check_refused("{\"\xc0\xaf\":1}", 0, format_errc::json_not_utf8);
  check_refused("{\"\xed\xa0\x80\":1}", 0, format_errc::json_not_utf8);
  check_refused("   ", 0, format_errc::json_unexpected_end);
  check_refused("{}\0"sv, 0, format_errc::json_trailing_content);
  check_refused("{}\v", 0, format_errc::json_trailing_content);
  check_refused("{}x", 0, format_errc::json_trailing_content);
  check_refused("{}{}", 0, format_errc::json_trailing_content);
  check_refused("\xef\xbb\xbf{}", 0, format_errc::json_byte_order_mark);
  check_refused("{/**/}", 0, format_errc::json_unexpected_character);
  check_refused("{" + entry("a", "U8", "[]", 0, 1) + ",}", 1, format_errc::json_unexpected_character);
  check_refused(R"({"a":{"dtype":"U8","shape":[NaN],"data_offsets":[0,1]}})", 1,
                format_errc::json_unexpected_character);
  check_refused("{\"a\nb\":1}", 0, format_errc::json_control_character);
  check_refused(R"({"a\x":1})", 0, format_errc::json_bad_escape);
  check_refused(R"({"a\ud800":1})", 0, format_errc::json_lone_surrogate);
}

TEST_CASE("safetensors: nesting cannot reach the reader's limit, in any field (rule 12)") {
  auto const deep = std::string(200'000, '[');
  check_refused("{\"a\":" + deep, 0, format_errc::entry_not_object);
  check_refused("{\"a\":{\"x\":" + deep, 0, format_errc::unknown_field);
  check_refused("{\"a\":{\"shape\":" + deep, 0, format_errc::dimension_not_number);
  check_refused("{\"__metadata__\":{\"x\":" + deep, 0, format_errc::metadata_value_not_string);
}

TEST_CASE("safetensors: white space around the object is accepted, a NUL is refused (rules 6 7 8, S09)") {
  for (auto const text : {" {}"sv, "\n\t {}"sv, "{} "sv, "{}\t\r\n "sv, " {} "sv})
    CHECK(parse(text, 0).entries.empty());
  check_refused("\0{}"sv, 0, format_errc::json_unexpected_character);
  check_refused("{}\0\0\0\0\0\0"sv, 0, format_errc::json_trailing_content);
}

TEST_CASE("safetensors: the root has to be an object (rule 10)") {
  for (auto const text : {"[]"sv, "null"sv, "\"x\""sv, "7"sv, "true"sv})
    check_refused(text, 0, format_errc::root_not_object);
}

TEST_CASE("safetensors: no tensors are valid, with and without metadata (rule 11, S04)") {
  CHECK(parse("{}", 0).entries.empty());
  CHECK(parse(R"({"__metadata__":{}})", 0).metadata.empty());
  CHECK(parse(R"({"__metadata__":{"a":"b"}})", 0).metadata.size() == 1);
  check_reads_back(safetensors_layout({}));
  check_reads_back(safetensors_layout({}, {{"a", "b"}}));
  check_refused("{}", 1, format_errc::trailing_bytes);
}

TEST_CASE("safetensors: a repeated tensor name is called so, whatever its offsets and spelling (rule 14, S03)") {
  auto const twice = "{" + entry("abc", "U8", "[2]", 0, 2) + "," + entry("abc", "U8", "[2]", 2, 4) + "}";
  check_refused(twice, 4, format_errc::json_duplicate_key, "duplicate");
  check_refused(twice, 4, format_errc::json_duplicate_key, "\"abc\"");
  check_refused("{" + entry("abc", "U8", "[2]", 0, 2) + "," + entry("abc", "U8", "[2]", 0, 2) + "}", 2,
                format_errc::json_duplicate_key, "\"abc\"");
  check_refused("{" + entry("abc", "U8", "[2]", 0, 2) + "," + entry("\\u0061bc", "U8", "[2]", 2, 4) + "}", 4,
                format_errc::json_duplicate_key, "\"abc\"");
}

TEST_CASE("safetensors: a repeated field, metadata object or metadata key is refused (rules 15 16 17)") {
  check_refused(R"({"w":{"dtype":"U8","dtype":"U8","shape":[],"data_offsets":[0,1]}})", 1,
                format_errc::json_duplicate_key, "\"dtype\", first at offset 14 in \"w\"");
  check_refused(R"({"__metadata__":{},"__metadata__":{}})", 0, format_errc::json_duplicate_key, "__metadata__");
  check_refused(R"({"__metadata__":{"k":"1","k":"1"}})", 0, format_errc::json_duplicate_key, "\"k\"");
}

TEST_CASE("safetensors: an unknown field is refused (rule 18)") {
  check_refused(R"({"w":{"dtype":"U8","shape":[],"data_offsets":[0,1],"extra":0}})", 1, format_errc::unknown_field,
                R"(in "w"."extra")");
  check_refused(R"({"w":{"Dtype":"U8","shape":[],"data_offsets":[0,1]}})", 1, format_errc::unknown_field, "\"w\"");
}

TEST_CASE("safetensors: an entry has to be an object (rule 19)") {
  check_refused(R"({"w":["F32",[2],[0,8]]})", 8, format_errc::entry_not_object, "\"w\"");
  check_refused(R"({"w":null})", 0, format_errc::entry_not_object, "\"w\"");
}

TEST_CASE("safetensors: a dtype has to be one of the known strings (rules 20 22, S25)") {
  check_refused(R"({"w":{"dtype":{"F32":null},"shape":[2],"data_offsets":[0,8]}})", 8, format_errc::dtype_not_string,
                "\"w\"");
  check_refused(R"({"w":{"dtype":null,"shape":[2],"data_offsets":[0,8]}})", 8, format_errc::dtype_not_string, "\"w\"");
  for (auto const* name : {"f32", "F33", "", "F32 ", "bfloat16"}) {
    check_refused("{" + entry("w", name, "[2]", 0, 8) + "}", 8, format_errc::unknown_dtype, "\"w\"");
  }
  check_refused("{" + entry("w", "F128", "[2]", 0, 32) + "}", 32, format_errc::unknown_dtype, "\"F128\"");
}

TEST_CASE("safetensors: a missing field is named (rule 21)") {
  check_refused(R"({"w":{"shape":[],"data_offsets":[0,1]}})", 1, format_errc::missing_field, "dtype in \"w\"");
  check_refused(R"({"w":{"dtype":"U8","data_offsets":[0,1]}})", 1, format_errc::missing_field, "shape in \"w\"");
  check_refused(R"({"w":{"dtype":"U8","shape":[]}})", 1, format_errc::missing_field, "data_offsets in \"w\"");
  check_refused(R"({"w":{}})", 0, format_errc::missing_field, "\"w\"");
}

TEST_CASE("safetensors: metadata maps strings to strings (rules 23 24 25, S05)") {
  check_refused(R"({"__metadata__":null})", 0, format_errc::metadata_not_object);
  check_refused(R"({"__metadata__":[]})", 0, format_errc::metadata_not_object);
  for (auto const* value : {"1", "null", "{}", "[]", "true"}) {
    check_refused(std::string(R"({"__metadata__":{"a":"b","step":)") + value + "}}", 0,
                  format_errc::metadata_value_not_string, "\"step\"");
  }
  CHECK(parse(R"({"\u005f_metadata__":{"a":"b"}})", 0).metadata.size() == 1);
}

TEST_CASE("safetensors: numbers are u64 in plain decimal, and bare (rule 26)") {
  for (auto const* number : {"8.0", "8e0", "-0", "-8", "08", "1E1"}) {
    check_refused(std::string(R"({"w":{"dtype":"U8","shape":[8],"data_offsets":[0,)") + number + "]}}", 8,
                  format_errc::json_not_u64, "\"w\"");
    check_refused(std::string(R"({"w":{"dtype":"U8","shape":[)") + number + R"(],"data_offsets":[0,8]}})", 8,
                  format_errc::json_not_u64, "\"w\"");
  }
  check_refused(R"({"w":{"dtype":"U8","shape":[+8],"data_offsets":[0,8]}})", 8, format_errc::json_unexpected_character);
  check_refused(R"({"w":{"dtype":"U8","shape":[18446744073709551616],"data_offsets":[0,8]}})", 8,
                format_errc::json_number_too_large, "\"w\"");
  check_refused(R"({"w":{"dtype":"U8","shape":["8"],"data_offsets":[0,8]}})", 8, format_errc::dimension_not_number,
                "\"w\"");
  check_refused(R"({"w":{"dtype":"U8","shape":[[8]],"data_offsets":[0,8]}})", 8, format_errc::dimension_not_number,
                "\"w\"");
  check_refused(R"({"w":{"dtype":"U8","shape":[8],"data_offsets":[0,"8"]}})", 8, format_errc::offset_not_number,
                "\"w\"");
}

TEST_CASE("safetensors: data_offsets is a pair and shape is a list (rule 27, S01)") {
  for (auto const* offsets : {"[]", "[8]", "[0,8,8]", "{\"a\":0}", "null", "8"}) {
    check_refused(std::string(R"({"w":{"dtype":"U8","shape":[8],"data_offsets":)") + offsets + "}}", 8,
                  format_errc::offsets_not_pair, "\"w\"");
  }
  for (auto const* shape : {"null", "8", "{}", "\"8\""}) {
    check_refused(std::string(R"({"w":{"dtype":"U8","shape":)") + shape + R"(,"data_offsets":[0,8]}})", 8,
                  format_errc::shape_not_array, "\"w\"");
  }
}

TEST_CASE("safetensors: a number of elements over 64 bits is refused, wherever a zero stands (rule 28)") {
  for (auto const* shape : {"[9223372036854775808,4,0]", "[0,9223372036854775808,4]", "[9223372036854775808,0,4]",
                            "[4294967296,4294967296]", "[18446744073709551615,2]"}) {
    check_refused("{" + entry("w", "U8", shape, 0, 0) + "}", 0, format_errc::shape_overflow, "\"w\"");
  }
}

TEST_CASE("safetensors: a number of bits over 64 bits is refused (rule 29, S25)") {
  check_refused("{" + entry("w", "F32", "[4611686018427387904]", 0, 0) + "}", 0, format_errc::size_overflow, "\"w\"");
  check_refused("{" + entry("w", "F4", "[4611686018427387904]", 0, 0) + "}", 0, format_errc::size_overflow, "\"w\"");
  check_refused("{" + entry("w", "U8", "[2305843009213693952]", 0, 0) + "}", 0, format_errc::size_overflow, "\"w\"");
  check_refused("{" + entry("w", "U8", "[2305843009213693951]", 0, 2305843009213693951U) + "}", 0,
                format_errc::data_truncated, "\"w\"");
}

TEST_CASE("safetensors: sub-byte elements have to fill the last byte (rule 30, S25)") {
  check_refused("{" + entry("w", "F4", "[3]", 0, 2) + "}", 2, format_errc::not_whole_bytes, "\"w\"");
  check_refused("{" + entry("w", "F4", "[]", 0, 1) + "}", 1, format_errc::not_whole_bytes, "\"w\"");
  check_refused("{" + entry("w", "F6_E2M3", "[2]", 0, 2) + "}", 2, format_errc::not_whole_bytes, "\"w\"");
  CHECK(parse("{" + entry("w", "F4", "[2,3]", 0, 3) + "}", 3).entries.size() == 1);
  CHECK(parse("{" + entry("w", "F6_E3M2", "[4]", 0, 3) + "}", 3).entries.size() == 1);
  CHECK(parse("{" + entry("w", "F4", "[0]", 0, 0) + "}", 0).entries.size() == 1);
}

TEST_CASE("safetensors: offsets have to agree with shape, dtype and file (rules 31 32 36, S01)") {
  check_refused("{" + entry("w", "F32", "[2]", 0, 7) + "}", 7, format_errc::size_mismatch, "\"w\"");
  check_refused("{" + entry("w", "F32", "[2]", 0, 9) + "}", 9, format_errc::size_mismatch, "\"w\"");
  check_refused("{" + entry("w", "F32", "[2]", 8, 0) + "}", 8, format_errc::offsets_reversed, "\"w\"");
  check_refused("{" + entry("w", "F32", "[2]", 18446744073709551615U, 7) + "}", 8, format_errc::offsets_reversed,
                "\"w\"");
  check_refused("{" + entry("w", "F32", "[2]", 0, 8) + "}", 7, format_errc::data_truncated, "\"w\"");
  check_refused("{" + entry("w", "F32", "[2]", 0, 8) + "}", 0, format_errc::data_truncated, "\"w\"");
  check_refused("{" + entry("w", "F32", "[2]", 18446744073709551607U, 18446744073709551615U) + "}", 8,
                format_errc::data_truncated, "\"w\"");
  check_refused("{" + entry("w", "F32", "[2]", 0, 8) + "}", 9, format_errc::trailing_bytes);
}

TEST_CASE("safetensors: the tensors cover the data exactly once (rules 33 34 43)") {
  check_refused("{" + entry("w", "U8", "[4]", 1, 5) + "}", 5, format_errc::data_hole, "\"w\"");
  check_refused("{" + entry("a", "U8", "[4]", 0, 4) + "," + entry("b", "U8", "[4]", 5, 9) + "}", 9,
                format_errc::data_hole, "\"b\"");
  check_refused("{" + entry("a", "U8", "[4]", 0, 4) + "," + entry("b", "U8", "[4]", 3, 7) + "}", 7,
                format_errc::data_overlap, "\"b\"");
  check_refused("{" + entry("z", "U8", "[0]", 2, 2) + "," + entry("a", "U8", "[4]", 0, 4) + "}", 4,
                format_errc::data_overlap, "\"z\"");
  check_refused("{" + entry("a", "U8", "[4]", 0, 4) + "," + entry("b", "U8", "[4]", 0, 4) + "}", 4,
                format_errc::data_overlap);
  check_refused("{" + entry("z", "U8", "[0]", 5, 5) + "," + entry("a", "U8", "[4]", 0, 4) + "}", 5,
                format_errc::data_hole, "\"z\"");
  std::string many = "{";
  for (int i = 0; i < 20'000; ++i) many += entry("t" + std::to_string(i), "U8", "[4096]", 0, 4096) + ",";
  many.back() = '}';
  check_refused(many, 4096, format_errc::data_overlap);
}

TEST_CASE("safetensors: empty tensors keep name, dtype and shape at every boundary (rule 35, S06)") {
  std::vector<safetensors_tensor> const tensors = {
      {"first", dtype::float32, {0}}, {"also", dtype::u8, {2, 0}},          {"full", dtype::i32, {2}},
      {"middle", dtype::f4, {0, 3}},  {"again", dtype::float64, {0, 0, 5}}, {"more", dtype::u8, {1}},
      {"last", dtype::i64, {3, 0}},   {"end", dtype::boolean, {0}}};
  safetensors_layout const layout(tensors);
  check_reads_back(layout);
  auto const& entries = layout.header().entries;
  REQUIRE(entries.size() == tensors.size());
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    CHECK(entries[i].name == tensors[i].name);
    CHECK(entries[i].type == tensors[i].type);
    CHECK(entries[i].shape == tensors[i].shape);
  }
  CHECK(parse("{" + entry("z", "F32", "[0]", 4, 4) + "," + entry("a", "U8", "[4]", 0, 4) + "}", 4).entries[1].name ==
        "z");
}

TEST_CASE("safetensors: a scalar is one element of every dtype (rule 37, S07)") {
  for (auto const& facts : spillway::dtype_table) {
    auto const type = *spillway::dtype_named(facts.name);
    if (facts.bits < 8) continue;
    CHECK(parse("{" + entry("s", facts.name, "[]", 0, facts.bits / 8) + "}", facts.bits / 8).entries[0].shape.empty());
    safetensors_layout const layout(std::vector<safetensors_tensor>{{"s", type, {}}});
    CHECK(layout.header().entries[0].end == facts.bits / 8);
    check_reads_back(layout);
  }
}

TEST_CASE("safetensors: a rank of 10000 is read, over the limit it is refused (rule 38)") {
  std::string shape = "[1";
  for (int i = 1; i < 10'000; ++i) shape += ",1";
  auto const text = "{" + entry("w", "U8", shape + "]", 0, 1) + "}";
  CHECK(parse(text, 1).entries[0].shape.size() == 10'000);
  CHECK(parse(text, 1, {.rank = 10'000}).entries.size() == 1);
  check_refused(text, 1, format_errc::rank_too_high, "\"w\"", {.rank = 9'999});
}

TEST_CASE(
    "safetensors: a name is any UTF-8, also empty or with control characters, read and written alike (rule 39, S11)") {
  CHECK(parse("{" + entry("", "U8", "[]", 0, 1) + "}", 1).entries[0].name.empty());
  CHECK(parse("{" + entry("a\\u0000b", "U8", "[]", 0, 1) + "}", 1).entries[0].name == "a\0b"sv);
  std::vector<safetensors_tensor> const tensors = {{"", dtype::u8, {}},
                                                   {std::string("a\0b"sv), dtype::u8, {}},
                                                   {std::string("a\0c"sv), dtype::u8, {}},
                                                   {"\n\x7f\"\\/../\xf0\x9f\x98\x80", dtype::u8, {}}};
  safetensors_layout const layout(tensors);
  check_reads_back(layout);
  CHECK(layout.header().entries[2].name == "a\0c"sv);
  // A message never ends at the NUL.
  check_refused("{" + entry("a\\u0000b", "U8", "[]", 1, 2) + "}", 2, format_errc::data_hole, R"("a\x00b")");
}

TEST_CASE("safetensors: tensors that are not aligned to their dtype are accepted (rule 41, S14)") {
  auto const text = "{" + entry("a", "U8", "[3]", 0, 3) + "," + entry("b", "F32", "[2]", 3, 11) + "}";
  auto const header = parse(text + std::string(13 - text.size() % 8, ' '), 11);
  CHECK(header.data_begin.count % 8 == 5);
  CHECK(header.entries[1].begin == 3);
  // A header itself at any address.
  auto const first = head(text);
  for (std::size_t shift = 0; shift < 8; ++shift) {
    std::vector<std::byte> moved(shift);
    moved.insert(moved.end(), first.begin(), first.end());
    CHECK(parse_safetensors_header(std::span(moved).subspan(shift), first.size() + 11).entries.size() == 2);
  }
}

TEST_CASE("safetensors: headers around the sizes of read buffers are read whole (S15)") {
  auto const text = "{" + entry("a", "U8", "[3]", 0, 3) + "}";
  for (std::size_t const centre : {4096U, 65'536U, 100'000U, 1U << 20U}) {
    for (std::size_t const length : {centre - 8, centre - 1, centre, centre + 1, centre + 8}) {
      auto const header = parse(text.substr(0, text.size() - 1) + std::string(length - text.size(), ' ') + "}", 3);
      CHECK(header.data_begin.count == 8 + length);
    }
  }
}

TEST_CASE("safetensors: counts and lengths stop at their limits (rule 44)") {
  auto const text =
      "{" + entry("abc", "U8", "[]", 0, 1) + "," + entry("d", "U8", "[]", 1, 2) + R"(,"__metadata__":{"k":"vv"}})";
  CHECK(parse(text, 2, {.tensors = 2, .name = bytes{3}, .metadata = bytes{3}}).entries.size() == 2);
  check_refused(text, 2, format_errc::too_many_tensors, "\"d\"", {.tensors = 1});
  check_refused(text, 2, format_errc::name_too_long, "\"abc\"", {.name = bytes{2}});
  check_refused(text, 2, format_errc::metadata_too_large, "\"k\"", {.metadata = bytes{2}});
}

TEST_CASE("safetensors_layout: the bytes of a header do not change") {
  std::vector<safetensors_tensor> const tensors = {
      {"wte", dtype::bfloat16, {3, 2}}, {"step", dtype::u64, {}}, {"none", dtype::u8, {0}}};
  safetensors_layout const layout(tensors, {{"format", "pt"}, {"note", "a\"b"}}, {.alignment = bytes{8}});
  CHECK(text_of(layout) ==
        R"({"__metadata__":{"format":"pt","note":"a\"b"},"wte":{"dtype":"BF16","shape":[3,2],"data_offsets":[0,12]},)"
        R"("step":{"dtype":"U64","shape":[],"data_offsets":[12,20]},)"
        R"("none":{"dtype":"U8","shape":[0],"data_offsets":[20,20]}}     )");
  CHECK(layout.header_bytes()[0] == std::byte{224});
  CHECK(layout.header_bytes()[1] == std::byte{0});
  CHECK(layout.header().file_size.count == 224 + 8 + 20);
  check_reads_back(layout);
}

TEST_CASE("safetensors_layout: the data begins at a multiple of the alignment, after spaces only (S08, S09)") {
  for (std::uint64_t const alignment : {8U, 64U, 4096U}) {
    for (std::size_t n = 0; n < 70; ++n) {
      std::vector<safetensors_tensor> const tensors = {{std::string(n, 'x'), dtype::u8, {5}}};
      safetensors_layout const layout(tensors, {}, {.alignment = bytes{alignment}});
      auto const text = text_of(layout);
      REQUIRE(layout.header().data_begin.count % alignment == 0);
      REQUIRE(text.front() == '{');
      auto const padding = text.size() - 1 - text.find_last_not_of(' ');
      REQUIRE(text[text.size() - 1 - padding] == '}');
      REQUIRE(padding < alignment);
      check_reads_back(layout);
    }
  }
  CHECK(safetensors_layout({}).header().data_begin.count == 4096);
  for (std::uint64_t const alignment : {0ULL, 1ULL, 4ULL, 24ULL, 1ULL << 63U}) {
    check_write_refused({}, spillway::errc::invalid_option, "alignment", {}, {.alignment = bytes{alignment}});
  }
}

TEST_CASE("safetensors_layout: names that make an unreadable file are refused (S03, S10)") {
  check_write_refused({{"a", dtype::u8, {1}}, {"b", dtype::u8, {}}, {"a", dtype::float32, {}}},
                      format_errc::json_duplicate_key, "tensor \"a\"");
  check_write_refused({}, format_errc::json_duplicate_key, "metadata key \"k\"", {{"k", "1"}, {"l", "1"}, {"k", "1"}});
  check_write_refused({{"__metadata__", dtype::u8, {1}}}, format_errc::reserved_name, "__metadata__");
  check_write_refused({{"bad\xff", dtype::u8, {1}}}, format_errc::json_not_utf8, R"("bad\xff")");
  check_write_refused({}, format_errc::json_not_utf8, R"("\xed\xa0\x80")", {{"k", "\xed\xa0\x80"}});
  check_reads_back(safetensors_layout(
      std::vector<safetensors_tensor>{{"___metadata__", dtype::u8, {1}}, {"__metadata___", dtype::u8, {1}}}));
}

TEST_CASE("safetensors_layout: sizes that make an unreadable file are refused") {
  check_write_refused({{"w", dtype::u8, {0, 1ULL << 63U, 4}}}, format_errc::shape_overflow, "\"w\"");
  check_write_refused({{"w", dtype::float64, {1ULL << 60U}}}, format_errc::size_overflow, "\"w\"");
  check_write_refused({{"w", dtype::f4, {3}}}, format_errc::not_whole_bytes, "\"w\"");
  std::vector<safetensors_tensor> many;
  for (int i = 0; i < 9; ++i) many.push_back({"t" + std::to_string(i), dtype::u8, {(1ULL << 61U) - 1}});
  check_write_refused(many, format_errc::size_overflow, "\"t8\"");
  // The last byte that fits is taken by the header.
  many.pop_back();
  check_write_refused(many, format_errc::size_overflow, "whole file");
}

TEST_CASE("safetensors_layout: what is written under a limit is read under it, the rest is refused (S13)") {
  int written = 0;
  int refused = 0;
  for (std::uint64_t limit = 8; limit < 400; ++limit) {
    std::vector<safetensors_tensor> const tensors = {{"abc", dtype::u8, {2}}, {"d", dtype::u8, {}}};
    safetensors_limits const limits{.header = bytes{limit}};
    auto const refusal = refusal_of([&] {
      safetensors_layout const layout(tensors, {{"k", "vv"}}, {.alignment = bytes{8}, .limits = limits});
      check_reads_back(layout, limits);
    });
    if (refusal) REQUIRE(refusal->code() == format_errc::header_too_large);
    refusal ? ++refused : ++written;
  }
  CHECK(written > 100);
  CHECK(refused > 100);
  std::vector<safetensors_tensor> const tensors = {{"abc", dtype::u8, {2}}, {"d", dtype::u8, {}}};
  check_write_refused(tensors, format_errc::too_many_tensors, "2", {}, {.limits = {.tensors = 1}});
  check_write_refused(tensors, format_errc::name_too_long, "\"abc\"", {}, {.limits = {.name = bytes{2}}});
  check_write_refused(tensors, format_errc::rank_too_high, "\"abc\"", {}, {.limits = {.rank = 0}});
  check_write_refused(tensors, format_errc::metadata_too_large, "\"k\"", {{"k", "vv"}},
                      {.limits = {.metadata = bytes{2}}});
}

TEST_CASE("safetensors_layout: refuses more tensors than the reference's header limit holds (S13)") {
  std::vector<safetensors_tensor> tensors(1'300'000);
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    tensors[i] = {"model.layers.weight.of.some.length." + std::to_string(i), dtype::float32, {1}};
  }
  check_write_refused(tensors, format_errc::header_too_large, "use more files");
}
