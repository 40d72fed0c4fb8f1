// SPDX-License-Identifier: Apache-2.0
/// The rules of a safetensors header, in the order in which they are checked.
#pragma once

#include <spillway/core/bytes.hpp>
#include <spillway/core/dtype.hpp>
#include <spillway/core/error.hpp>
#include <spillway/format/detail/text.hpp>
#include <spillway/format/format_errc.hpp>
#include <spillway/format/json_reader.hpp>
#include <spillway/format/safetensors_header.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace spillway::inline v0::detail {

inline constexpr std::uint64_t safetensors_length_bytes = 8;
inline constexpr std::string_view safetensors_metadata_key = "__metadata__";

/// Bytes of a tensor, or why there is no such number. The dimensions' order does not matter: [0, 2^63, 4] is refused as
/// [2^63, 4, 0] is.
struct tensor_size {
  std::uint64_t bytes = 0;
  std::optional<format_errc> wrong{};
};
[[nodiscard]] inline tensor_size size_of_tensor(dtype type, std::span<std::uint64_t const> shape) noexcept {
  std::uint64_t elements = 1;
  bool empty = false;
  for (auto const dimension : shape) {
    if (dimension == 0) {
      empty = true;
    } else if (!checked_multiply(elements, dimension, elements)) {
      return {.wrong = format_errc::shape_overflow};
    }
  }
  std::uint64_t bits = 0;
  if (!checked_multiply(empty ? 0 : elements, bits_of(type), bits)) return {.wrong = format_errc::size_overflow};
  if (bits % 8 != 0) return {.wrong = format_errc::not_whole_bytes};
  return {.bytes = bits / 8};
}

class safetensors_parser {
 public:
  safetensors_parser(safetensors_limits limits, std::string_view path, std::uint64_t file_size)
      : limits_(limits), path_(path), file_size_(file_size) {}

  [[nodiscard]] std::uint64_t header_length(std::span<std::byte const, safetensors_length_bytes> first) const {
    if (file_size_ < first.size()) refuse(format_errc::file_too_short, {.wanted = bytes{8}, .got = bytes{file_size_}});
    std::uint64_t length = 0;
    for (std::size_t i = 0; i < first.size(); ++i) length |= std::to_integer<std::uint64_t>(first[i]) << (8 * i);
    if (length == 0) refuse(format_errc::generation_open, {});
    if (length > limits_.header.count) {
      refuse(format_errc::header_too_large, {.wanted = bytes{length}, .got = limits_.header});
    }
    if (length > file_size_ - first.size()) {
      refuse(format_errc::header_past_end, {.wanted = bytes{length}, .got = bytes{file_size_ - first.size()}});
    }
    return length;
  }

  [[nodiscard]] safetensors_header parse(std::span<std::byte const> first_bytes) {
    if (file_size_ < safetensors_length_bytes) {
      refuse(format_errc::file_too_short, {.wanted = bytes{8}, .got = bytes{file_size_}});
    }
    require_given(first_bytes, safetensors_length_bytes);
    auto const length = header_length(first_bytes.first<safetensors_length_bytes>());
    require_given(first_bytes, safetensors_length_bytes + length);
    header_.data_begin = bytes{safetensors_length_bytes + length};
    header_.file_size = bytes{file_size_};
    auto const text = first_bytes.subspan(safetensors_length_bytes, length);
    read_text({reinterpret_cast<char const*>(text.data()), text.size()});
    check_cover();
    return std::move(header_);
  }

 private:
  [[nodiscard]] std::uint64_t data_size() const noexcept { return file_size_ - header_.data_begin.count; }

  [[noreturn]] void refuse(std::error_code code, error::context about) const {
    about.where = "safetensors header";
    about.path = std::string(path_);
    throw error{code, std::move(about)};
  }
  void require_given(std::span<std::byte const> first_bytes, std::uint64_t wanted) const {
    if (first_bytes.size() < wanted) {
      refuse(errc::short_transfer, {.wanted = bytes{wanted}, .got = bytes{first_bytes.size()}});
    }
  }

  void read_text(std::string_view text) {
    // An entry is three deep; 8 leaves no room to make the reader recurse. The caps on tensors, rank, names and
    // metadata bound the values.
    json_reader reader(text, {.size = limits_.header, .depth = 8, .values = limits_.header.count},
                       {.where = "safetensors header", .path = path_, .offset = safetensors_length_bytes});
    if (reader.peek() != json_kind::object) reader.fail(format_errc::root_not_object, reader.position());
    reader.object([&](std::string name) {
      if (name == safetensors_metadata_key) {
        read_metadata(reader);
      } else {
        read_entry(reader, std::move(name));
      }
    });
    reader.finish();
  }

  void read_metadata(json_reader& reader) {
    if (reader.peek() != json_kind::object) reader.fail(format_errc::metadata_not_object, reader.position());
    std::uint64_t size = 0;
    reader.object([&](std::string key) {
      if (reader.peek() != json_kind::string) reader.fail(format_errc::metadata_value_not_string, reader.position());
      auto const at = reader.position();
      std::string value = reader.string();
      size += key.size() + value.size();
      if (size > limits_.metadata.count) reader.fail(format_errc::metadata_too_large, at);
      header_.metadata.emplace_back(std::move(key), std::move(value));
    });
  }

  void read_entry(json_reader& reader, std::string name) {
    bool const object = reader.peek() == json_kind::object;
    auto const at = reader.position();
    if (header_.entries.size() == limits_.tensors) reader.fail(format_errc::too_many_tensors, at);
    if (name.size() > limits_.name.count) reader.fail(format_errc::name_too_long, at);
    if (!object) reader.fail(format_errc::entry_not_object, at);
    std::optional<dtype> type;
    std::optional<std::vector<std::uint64_t>> shape;
    std::optional<std::array<std::uint64_t, 2>> offsets;
    reader.object([&](std::string const& field) {
      auto const kind = reader.peek();
      if (field == "dtype") {
        type = read_dtype(reader, kind);
      } else if (field == "shape") {
        shape = read_shape(reader, kind);
      } else if (field == "data_offsets") {
        offsets = read_offsets(reader, kind);
      } else {
        reader.fail(format_errc::unknown_field, reader.position());
      }
    });
    if (!type) reader.fail(format_errc::missing_field, at, "dtype");
    if (!shape) reader.fail(format_errc::missing_field, at, "shape");
    if (!offsets) reader.fail(format_errc::missing_field, at, "data_offsets");
    auto const [begin, end] = *offsets;
    auto const size = size_of_tensor(*type, *shape);
    if (size.wrong) reader.fail(*size.wrong, at);
    if (end < begin) reader.fail(format_errc::offsets_reversed, at);
    if (end - begin != size.bytes) {
      reader.fail(format_errc::size_mismatch, at,
                  std::to_string(size.bytes) + " B needed, " + std::to_string(end - begin) + " B given");
    }
    if (end > data_size()) {
      reader.fail(format_errc::data_truncated, at,
                  std::to_string(end) + " B of data needed, " + std::to_string(data_size()) + " B in the file");
    }
    header_.entries.push_back({std::move(name), *type, std::move(*shape), begin, end});
  }

  static dtype read_dtype(json_reader& reader, json_kind kind) {
    auto const at = reader.position();
    if (kind != json_kind::string) reader.fail(format_errc::dtype_not_string, at);
    auto const name = reader.string();
    auto const type = dtype_named(name);
    if (!type) reader.fail(format_errc::unknown_dtype, at, quoted(name));
    return *type;
  }

  [[nodiscard]] std::vector<std::uint64_t> read_shape(json_reader& reader, json_kind kind) const {
    if (kind != json_kind::array) reader.fail(format_errc::shape_not_array, reader.position());
    std::vector<std::uint64_t> shape;
    reader.array([&] {
      if (reader.peek() != json_kind::number) reader.fail(format_errc::dimension_not_number, reader.position());
      if (shape.size() == limits_.rank) reader.fail(format_errc::rank_too_high, reader.position());
      shape.push_back(reader.u64());
    });
    return shape;
  }

  static std::array<std::uint64_t, 2> read_offsets(json_reader& reader, json_kind kind) {
    auto const at = reader.position();
    if (kind != json_kind::array) reader.fail(format_errc::offsets_not_pair, at);
    std::array<std::uint64_t, 2> offsets{};
    std::size_t count = 0;
    reader.array([&] {
      if (count == offsets.size()) reader.fail(format_errc::offsets_not_pair, at);
      if (reader.peek() != json_kind::number) reader.fail(format_errc::offset_not_number, reader.position());
      offsets[count++] = reader.u64();
    });
    if (count != offsets.size()) reader.fail(format_errc::offsets_not_pair, at);
    return offsets;
  }

  /// The sizes are right and inside the file; now nothing may be left over and nothing used twice.
  void check_cover() {
    auto& entries = header_.entries;
    std::stable_sort(entries.begin(), entries.end(), [](safetensors_entry const& a, safetensors_entry const& b) {
      return std::pair{a.begin, a.end} < std::pair{b.begin, b.end};
    });
    std::uint64_t covered = 0;
    for (auto const& entry : entries) {
      if (entry.begin != covered) {
        refuse(entry.begin < covered ? format_errc::data_overlap : format_errc::data_hole,
               {.offset = header_.data_begin.count + entry.begin, .detail = "tensor " + quoted(entry.name)});
      }
      covered = entry.end;
    }
    if (covered != data_size()) {
      refuse(format_errc::trailing_bytes,
             {.wanted = bytes{header_.data_begin.count + covered}, .got = bytes{file_size_}});
    }
  }

  safetensors_limits limits_;
  std::string_view path_;
  std::uint64_t file_size_;
  safetensors_header header_;
};

}  // namespace spillway::inline v0::detail
