// SPDX-License-Identifier: Apache-2.0
/// One code for each way that the contents of a file can be bad.
#pragma once

#include <spillway/core/error.hpp>

#include <string>
#include <system_error>
#include <type_traits>

namespace spillway::inline v0 {

/// Why a file was refused. A writer that would make such a file throws the same code before it has written a byte.
/// Values are stable: they appear in logs. JSON from 1, safetensors from 100.
enum class format_errc {
  json_too_large = 1,             ///< more bytes than the limit
  json_too_many_values = 2,       ///< more values than the limit
  json_not_utf8 = 3,              ///< also overlong forms, surrogates, above U+10FFFF
  json_byte_order_mark = 4,       ///< starts with EF BB BF
  json_unexpected_end = 5,        ///< empty, only white space, or cut
  json_unexpected_character = 6,  ///< the grammar wants something else here
  json_trailing_content = 7,      ///< anything but white space after the value
  json_too_deep = 8,              ///< more nested arrays and objects than the limit
  json_control_character = 9,     ///< below U+0020, not escaped, in a string
  json_bad_escape = 10,           ///< backslash and something that is no escape
  json_lone_surrogate = 11,       ///< half of a UTF-16 pair in \u escapes
  json_not_u64 = 12,              ///< sign, leading zero, fraction or exponent
  json_number_too_large = 13,     ///< 2^64 or more
  json_duplicate_key = 14,        ///< the same decoded key twice in one object; also a tensor's name twice

  file_too_short = 100,             ///< no room for the eight bytes of the header length
  generation_open = 101,            ///< header length 0: the file is still being written
  header_too_large = 102,           ///< header longer than the limit
  header_past_end = 103,            ///< header longer than the file
  root_not_object = 104,            ///< the header is not a JSON object
  metadata_not_object = 105,        ///< `__metadata__` is an array, null, ...
  metadata_value_not_string = 106,  ///< `__metadata__` maps strings to strings
  metadata_too_large = 107,         ///< keys and values together over the limit
  too_many_tensors = 108,           ///< over the limit
  name_too_long = 109,              ///< over the limit
  reserved_name = 110,              ///< a tensor to be written is called `__metadata__`
  entry_not_object = 111,           ///< a tensor is described by an array, null, ...
  unknown_field = 112,              ///< other than dtype, shape, data_offsets
  missing_field = 113,              ///< one of dtype, shape, data_offsets
  dtype_not_string = 114,           ///< dtype is an object, null, ...
  unknown_dtype = 115,              ///< not one of the names in core/dtype.hpp; names are case-sensitive
  shape_not_array = 116,            ///< shape is null, a number, ...
  dimension_not_number = 117,       ///< an element of shape is a string, an array, ...
  rank_too_high = 118,              ///< over the limit
  offsets_not_pair = 119,           ///< data_offsets is not an array of two
  offset_not_number = 120,          ///< an element of data_offsets is a string, an array, ...
  shape_overflow = 121,             ///< the product of the non-zero dimensions does not fit 64 bits
  size_overflow = 122,              ///< the bits of a tensor, or the bytes of the file, do not fit 64 bits
  not_whole_bytes = 123,            ///< a sub-byte dtype whose elements do not fill the last byte
  offsets_reversed = 124,           ///< end before begin
  size_mismatch = 125,              ///< end - begin is not what shape and dtype need
  data_truncated = 126,             ///< a tensor ends after the end of the file
  data_hole = 127,                  ///< bytes before or between the tensors that belong to none
  data_overlap = 128,               ///< a tensor begins inside another one
  trailing_bytes = 129,             ///< bytes after the last tensor
};

namespace detail {
class format_category final : public std::error_category {
 public:
  [[nodiscard]] char const* name() const noexcept override { return "spillway.format"; }
  [[nodiscard]] std::string message(int code) const override {
    switch (static_cast<format_errc>(code)) {
      case format_errc::json_too_large:
        return "JSON text over the size limit";
      case format_errc::json_too_many_values:
        return "JSON text with more values than the limit";
      case format_errc::json_not_utf8:
        return "not valid UTF-8";
      case format_errc::json_byte_order_mark:
        return "JSON text starts with a byte order mark";
      case format_errc::json_unexpected_end:
        return "JSON text ends too early";
      case format_errc::json_unexpected_character:
        return "unexpected character in JSON";
      case format_errc::json_trailing_content:
        return "content after the JSON value";
      case format_errc::json_too_deep:
        return "JSON nested deeper than the limit";
      case format_errc::json_control_character:
        return "control character in a JSON string";
      case format_errc::json_bad_escape:
        return "bad escape in a JSON string";
      case format_errc::json_lone_surrogate:
        return "lone surrogate in a JSON string";
      case format_errc::json_not_u64:
        return "JSON number is not an unsigned integer in plain decimal";
      case format_errc::json_number_too_large:
        return "JSON number does not fit 64 bits";
      case format_errc::json_duplicate_key:
        return "duplicate key in a JSON object";
      case format_errc::file_too_short:
        return "file too short for a safetensors header";
      case format_errc::generation_open:
        return "the file is still being written (header length 0)";
      case format_errc::header_too_large:
        return "safetensors header over the size limit";
      case format_errc::header_past_end:
        return "safetensors header longer than the file";
      case format_errc::root_not_object:
        return "safetensors header is not a JSON object";
      case format_errc::metadata_not_object:
        return "__metadata__ is not an object";
      case format_errc::metadata_value_not_string:
        return "__metadata__ has a value that is not a string";
      case format_errc::metadata_too_large:
        return "__metadata__ over the size limit";
      case format_errc::too_many_tensors:
        return "more tensors than the limit";
      case format_errc::name_too_long:
        return "tensor name over the length limit";
      case format_errc::reserved_name:
        return "a tensor cannot be called __metadata__";
      case format_errc::entry_not_object:
        return "tensor entry is not an object";
      case format_errc::unknown_field:
        return "unknown field in a tensor entry";
      case format_errc::missing_field:
        return "missing field in a tensor entry";
      case format_errc::dtype_not_string:
        return "dtype is not a string";
      case format_errc::unknown_dtype:
        return "unknown dtype";
      case format_errc::shape_not_array:
        return "shape is not an array";
      case format_errc::dimension_not_number:
        return "shape has an element that is not a number";
      case format_errc::rank_too_high:
        return "shape with more dimensions than the limit";
      case format_errc::offsets_not_pair:
        return "data_offsets is not an array of two";
      case format_errc::offset_not_number:
        return "data_offsets has an element that is not a number";
      case format_errc::shape_overflow:
        return "number of elements does not fit 64 bits";
      case format_errc::size_overflow:
        return "size does not fit 64 bits";
      case format_errc::not_whole_bytes:
        return "elements do not fill whole bytes";
      case format_errc::offsets_reversed:
        return "data_offsets end before they begin";
      case format_errc::size_mismatch:
        return "data_offsets disagree with shape and dtype";
      case format_errc::data_truncated:
        return "tensor ends after the end of the file";
      case format_errc::data_hole:
        return "bytes that belong to no tensor";
      case format_errc::data_overlap:
        return "tensors overlap";
      case format_errc::trailing_bytes:
        return "bytes after the last tensor";
    }
    return "unknown spillway.format error " + std::to_string(code);
  }
};
inline constinit format_category const format_category_instance{};
}  // namespace detail

[[nodiscard]] inline std::error_code make_error_code(format_errc code) noexcept {
  return {static_cast<int>(code), detail::format_category_instance};
}

}  // namespace spillway::inline v0

template <>
struct std::is_error_code_enum<spillway::format_errc> : std::true_type {};
