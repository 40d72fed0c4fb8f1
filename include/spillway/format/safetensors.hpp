// SPDX-License-Identifier: Apache-2.0
/// Reads the header of a safetensors file and refuses every file that is not exactly right.
#pragma once

#include <spillway/format/detail/safetensors_parser.hpp>
#include <spillway/format/safetensors_header.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace spillway::inline v0 {

/// How many bytes of header follow the first eight. Read those, then call parse_safetensors_header.
/// Pre      `first` holds the start of the file; what it holds does not matter when the file is shorter than 8 bytes.
/// Errors   format_errc: file_too_short, generation_open, header_too_large, header_past_end. So the result may be
///          allocated.
/// Threads  safe.
[[nodiscard]] inline std::uint64_t safetensors_header_length(std::span<std::byte const, 8> first,
                                                             std::uint64_t file_size, safetensors_limits limits = {},
                                                             std::string_view path = {}) {
  return detail::safetensors_parser{limits, path, file_size}.header_length(first);
}

/// The header of a file of `file_size` bytes that begins with `first_bytes`: 8 + header length of them; more are
/// ignored. The file is valid when this returns: only the values inside the tensors are not looked at.
/// Errors   format_errc, one code for each rule of format/README.md, with path, offset and tensor; errc::short_transfer
///          when `first_bytes` is shorter than the header, as when the file changed after its length was read.
/// Threads  safe.
/// Cost     n log n in the tensors; memory grows with the text read, never with a number in it.
/// Source   https://github.com/huggingface/safetensors, format section; its reference implementation at 24b0b28.
[[nodiscard]] inline safetensors_header parse_safetensors_header(std::span<std::byte const> first_bytes,
                                                                 std::uint64_t file_size,
                                                                 safetensors_limits limits = {},
                                                                 std::string_view path = {}) {
  return detail::safetensors_parser{limits, path, file_size}.parse(first_bytes);
}

}  // namespace spillway::inline v0
