// SPDX-License-Identifier: Apache-2.0
/// What the header of a safetensors file says, and what it may demand.
#pragma once

#include <spillway/core/bytes.hpp>
#include <spillway/core/dtype.hpp>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace spillway::inline v0 {

/// One tensor of a file. Its start need not be aligned to its dtype: copy, never reinterpret.
struct safetensors_entry {
  std::string name;  ///< any valid UTF-8, also empty or with NUL inside: never a C string, never a path
  dtype type = dtype::float32;
  std::vector<std::uint64_t> shape;  ///< row-major; empty for a scalar
  std::uint64_t begin = 0;           ///< bytes from the start of the data section
  std::uint64_t end = 0;

  friend bool operator==(safetensors_entry const&, safetensors_entry const&) = default;
};

using safetensors_metadata = std::vector<std::pair<std::string, std::string>>;

/// What a valid file says. The entries cover [data_begin, file_size) with no hole and no overlap.
struct safetensors_header {
  safetensors_metadata metadata;           ///< in the file's order, keys unique
  std::vector<safetensors_entry> entries;  ///< by offset; empty tensors at the same offset in the order of the header
  bytes data_begin{};                      ///< 8 + header length
  bytes file_size{};

  friend bool operator==(safetensors_header const&, safetensors_header const&) = default;
};

/// What a file may demand. The first is the reference implementation's own limit, the others are ours.
struct safetensors_limits {
  bytes header{100'000'000};          ///< the header length, without its own eight bytes
  std::uint64_t tensors = 2'000'000;  ///< more than a header of 100 MB holds
  std::uint64_t rank = 65'536;
  bytes name{65'536};            ///< one tensor's
  bytes metadata{64ULL << 20U};  ///< keys and values together
};

}  // namespace spillway::inline v0
