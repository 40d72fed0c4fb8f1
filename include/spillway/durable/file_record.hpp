// SPDX-License-Identifier: Apache-2.0
/// What a manifest says about the bytes of a file.
#pragma once

#include <spillway/core/bytes.hpp>
#include <spillway/core/crc32c.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace spillway::inline v0 {

/// Checksums are taken over this many bytes, starting again at each segment.
inline constexpr bytes checksum_bytes{1ULL << 20U};

/// A stretch of a file, one array of a chunk or one tensor, with a CRC-32C for each MiB of it; the last may cover less.
struct checked_segment {
  bytes length{};
  std::vector<std::uint32_t> checksums{};
  friend bool operator==(checked_segment const&, checked_segment const&) = default;
};

/// A file: its segments cover every byte of it, in order.
struct file_record {
  std::string name{};  ///< within the checkpoint's directory
  bytes size{};
  std::vector<checked_segment> segments{};
  friend bool operator==(file_record const&, file_record const&) = default;
};

/// Number of checksums of a segment of that length.
[[nodiscard]] constexpr std::uint64_t checksums_for(bytes length) noexcept {
  return length.count / checksum_bytes.count + (length.count % checksum_bytes.count != 0 ? 1 : 0);
}

/// Builds a segment from consecutive pieces of it.
/// Threads  one at a time.
class segment_builder {
 public:
  void add(std::span<std::byte const> data) {
    while (!data.empty()) {
      std::uint64_t const filled = segment_.length.count % checksum_bytes.count;
      if (filled == 0) segment_.checksums.push_back(0);
      auto const take = static_cast<std::size_t>(std::min<std::uint64_t>(data.size(), checksum_bytes.count - filled));
      segment_.checksums.back() = crc32c(data.first(take), segment_.checksums.back());
      segment_.length += bytes{take};
      data = data.subspan(take);
    }
  }
  [[nodiscard]] bytes length() const noexcept { return segment_.length; }
  /// The segment so far; the next add() starts another.
  [[nodiscard]] checked_segment take() { return std::exchange(segment_, {}); }

 private:
  checked_segment segment_{};
};

/// The segment that is all of `data`.
[[nodiscard]] inline checked_segment segment_of(std::span<std::byte const> data) {
  segment_builder builder;
  builder.add(data);
  return builder.take();
}

}  // namespace spillway::inline v0
