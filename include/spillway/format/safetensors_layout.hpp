// SPDX-License-Identifier: Apache-2.0
/// Where each tensor of a safetensors file goes, and the header that says so, before any data exists.
#pragma once

#include <spillway/core/bytes.hpp>
#include <spillway/core/dtype.hpp>
#include <spillway/core/error.hpp>
#include <spillway/format/detail/safetensors_parser.hpp>
#include <spillway/format/detail/text.hpp>
#include <spillway/format/format_errc.hpp>
#include <spillway/format/json_writer.hpp>
#include <spillway/format/safetensors_header.hpp>

#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace spillway::inline v0 {

/// A tensor that is to be written.
struct safetensors_tensor {
  std::string name;
  dtype type = dtype::float32;
  std::vector<std::uint64_t> shape;  ///< empty for a scalar
};

struct safetensors_layout_options {
  bytes alignment{4096};  ///< of the data section in the file: a power of two from 8 to the header limit
  safetensors_limits limits{};
};

/// A whole file but its data: a pure function of the arguments, so every rank computes it alone. Tensors lie in the
/// order given, one after the other; who wants each aligned to its own dtype orders them by falling size. Accepted by
/// parse_safetensors_header under the same limits, always.
class safetensors_layout {
 public:
  /// Errors   format_errc, the code with which the reader would refuse the file (reserved_name for a tensor called
  ///          __metadata__); errc::invalid_option for the alignment. The detail names the tensor.
  /// Threads  safe.
  /// Cost     n log n in the tensors; the text of the header, once.
  explicit safetensors_layout(std::span<safetensors_tensor const> tensors, safetensors_metadata metadata = {},
                              safetensors_layout_options options = {})
      : limits_(options.limits) {
    auto const alignment = options.alignment.count;
    if (!std::has_single_bit(alignment) || alignment < detail::safetensors_length_bytes ||
        alignment > limits_.header.count) {
      refuse(errc::invalid_option, "alignment has to be a power of two from 8 to the header limit");
    }
    if (tensors.size() > limits_.tensors) refuse(format_errc::too_many_tensors, std::to_string(tensors.size()));
    header_.metadata = std::move(metadata);
    header_.entries.reserve(tensors.size());
    text_.assign(detail::safetensors_length_bytes, '\0');
    text_ += '{';
    append_metadata();
    for (auto const& tensor : tensors) append_tensor(tensor);
    text_ += '}';
    refuse_repeated();
    close(alignment);
  }

  /// What parse_safetensors_header will say about the file.
  [[nodiscard]] safetensors_header const& header() const noexcept { return header_; }
  /// The first header().data_begin bytes of the file. Valid while the layout lives.
  [[nodiscard]] std::span<std::byte const> header_bytes() const noexcept { return std::as_bytes(std::span{text_}); }

 private:
  [[noreturn]] static void refuse(std::error_code code, std::string detail) {
    throw error{code, {.where = "safetensors_layout", .detail = std::move(detail)}};
  }
  static void append_name(std::string& out, std::string_view name) {
    if (detail::invalid_utf8_at(name) != std::string_view::npos)
      refuse(format_errc::json_not_utf8, detail::quoted(name));
    append_json_string(out, name);
  }
  /// Called as the text grows, so that a hopeless list stops early.
  void check_text() const {
    auto const length = text_.size() - detail::safetensors_length_bytes;
    if (length > limits_.header.count) {
      throw error{format_errc::header_too_large,
                  {.where = "safetensors_layout",
                   .wanted = bytes{length},
                   .got = limits_.header,
                   .detail = "at tensor " + std::to_string(header_.entries.size()) + "; use more files"}};
    }
  }

  void append_metadata() {
    if (header_.metadata.empty()) return;
    std::uint64_t size = 0;
    append_json_string(text_, detail::safetensors_metadata_key);
    char before = ':';
    for (auto const& [key, value] : header_.metadata) {
      size += key.size() + value.size();
      if (size > limits_.metadata.count) refuse(format_errc::metadata_too_large, detail::quoted(key));
      text_ += before == ':' ? ":{" : ",";
      before = ',';
      append_name(text_, key);
      text_ += ':';
      append_name(text_, value);
      check_text();
    }
    text_ += '}';
  }

  void append_tensor(safetensors_tensor const& tensor) {
    auto const name = "tensor " + detail::quoted(tensor.name);
    if (tensor.name == detail::safetensors_metadata_key) refuse(format_errc::reserved_name, name);
    if (tensor.name.size() > limits_.name.count) refuse(format_errc::name_too_long, name);
    if (tensor.shape.size() > limits_.rank) refuse(format_errc::rank_too_high, name);
    auto const size = detail::size_of_tensor(tensor.type, tensor.shape);
    if (size.wrong) refuse(*size.wrong, name);
    std::uint64_t const begin = header_.entries.empty() ? 0 : header_.entries.back().end;
    std::uint64_t end = 0;
    if (!checked_add(begin, size.bytes, end)) refuse(format_errc::size_overflow, name);

    if (text_.back() != '{') text_ += ',';
    append_name(text_, tensor.name);
    text_ += ":{\"dtype\":\"";
    text_ += name_of(tensor.type);
    text_ += "\",\"shape\":[";
    for (std::size_t i = 0; i < tensor.shape.size(); ++i) {
      if (i != 0) text_ += ',';
      text_ += std::to_string(tensor.shape[i]);
    }
    text_ += "],\"data_offsets\":[" + std::to_string(begin) + ',' + std::to_string(end) + "]}";
    header_.entries.push_back({tensor.name, tensor.type, tensor.shape, begin, end});
    check_text();
  }

  void refuse_repeated() const {
    std::vector<detail::placed_name> names;
    for (auto const& entry : header_.entries) names.emplace_back(entry.name, names.size());
    if (auto const repeated = detail::find_repeated(std::move(names))) {
      refuse(format_errc::json_duplicate_key, "tensor " + detail::quoted(repeated->first.first));
    }
    std::vector<detail::placed_name> keys;
    for (auto const& [key, value] : header_.metadata) keys.emplace_back(key, keys.size());
    if (auto const repeated = detail::find_repeated(std::move(keys))) {
      refuse(format_errc::json_duplicate_key, "metadata key " + detail::quoted(repeated->first.first));
    }
  }

  void close(std::uint64_t alignment) {
    check_text();
    text_.resize(round_up(text_.size(), alignment), ' ');
    check_text();
    auto const length = text_.size() - detail::safetensors_length_bytes;
    for (std::size_t i = 0; i < detail::safetensors_length_bytes; ++i) {
      text_[i] = static_cast<char>(static_cast<unsigned char>(length >> (8 * i)));
    }
    header_.data_begin = bytes{text_.size()};
    std::uint64_t const data = header_.entries.empty() ? 0 : header_.entries.back().end;
    if (!checked_add(text_.size(), data, header_.file_size.count)) refuse(format_errc::size_overflow, "the whole file");
  }

  safetensors_limits limits_;
  safetensors_header header_;
  std::string text_;
};

}  // namespace spillway::inline v0
