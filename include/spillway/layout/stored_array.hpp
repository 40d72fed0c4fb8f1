// SPDX-License-Identifier: Apache-2.0
/// How the state arrays of a chunk lie beside each other, in a file and in a slot.
#pragma once

#include <spillway/core/bytes.hpp>
#include <spillway/core/dtype.hpp>
#include <spillway/layout/parameter_layout.hpp>

#include <cstdint>
#include <span>
#include <string>

namespace spillway::inline v0 {

/// Every stored array of a chunk starts on and is padded to this many bytes: the format fixes it, not the machine.
inline constexpr bytes array_alignment{4096};

/// One array that an optimizer keeps per element, as a codec stores it.
struct stored_array {
  std::string name{};                 ///< PyTorch's name: "master", "exp_avg"
  std::string codec{};                ///< name and version of how it is stored: "float32"
  dtype type = dtype::float32;        ///< of one stored element; u8 when blocks are opaque
  std::uint64_t bytes_per_block = 0;  ///< stored bytes of one block of 1024 elements
  friend bool operator==(stored_array const&, stored_array const&) = default;
  /// Elements are stored one by one, so that a file can show them as a typed tensor.
  [[nodiscard]] bool typed() const noexcept { return bytes_per_block == block_elements * size_of(type).count; }
};

/// Stored bytes of one array over `blocks` blocks, padding included.
[[nodiscard]] inline bytes array_bytes(stored_array const& array, std::uint64_t blocks) noexcept {
  return round_up(bytes{blocks * array.bytes_per_block}, array_alignment);
}

/// Where array `index` starts in a chunk of `blocks` blocks when arrays lie back to back, as in files; the index one past the
/// last gives the size of the chunk.
[[nodiscard]] inline bytes dense_offset(std::span<stored_array const> arrays, std::size_t index,
                                        std::uint64_t blocks) noexcept {
  bytes at{};
  for (std::size_t i = 0; i < index; ++i) at += array_bytes(arrays[i], blocks);
  return at;
}
[[nodiscard]] inline bytes dense_bytes(std::span<stored_array const> arrays, std::uint64_t blocks) noexcept {
  return dense_offset(arrays, arrays.size(), blocks);
}

/// The same in memory, where array i starts i x 4096 B later than back to back: starts that are equal modulo a large power of
/// two cost an update pass half its speed (five streams fall into the same cache sets).
[[nodiscard]] inline bytes slot_offset(std::span<stored_array const> arrays, std::size_t index,
                                       std::uint64_t blocks) noexcept {
  return dense_offset(arrays, index, blocks) + index * array_alignment;
}
[[nodiscard]] inline bytes slot_bytes(std::span<stored_array const> arrays, std::uint64_t blocks) noexcept {
  return slot_offset(arrays, arrays.size(), blocks);
}

}  // namespace spillway::inline v0
