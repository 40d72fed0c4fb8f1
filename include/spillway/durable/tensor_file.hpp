// SPDX-License-Identifier: Apache-2.0
/// Writes whole tensors into a safetensors file that any reader of the format can load.
#pragma once

#include <spillway/core/config.hpp>
#include <spillway/durable/checked_safetensors.hpp>
#include <spillway/durable/file_record.hpp>
#include <spillway/durable/generation_file.hpp>
#include <spillway/format/safetensors_layout.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace spillway::inline v0 {

/// The order in which tensors lie in a file: by falling size of an element, so that each starts aligned to its own; else as given.
[[nodiscard]] inline std::vector<std::size_t> tensor_order(std::span<safetensors_tensor const> tensors) {
  std::vector<std::size_t> order(tensors.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return bits_of(tensors[a].type) > bits_of(tensors[b].type); });
  return order;
}

/// Writes the tensors of a layout in its order. Until finish() has returned every reader refuses the file. The FileSystem outlives it.
/// Threads  one at a time.
template <FileSystem FS = posix_file_system>
class tensor_file_writer {
 public:
  /// Errors   errno with the path: EEXIST, ENOSPC, ...
  tensor_file_writer(FS& fs, std::string path, safetensors_layout layout, unsigned mode)
      : layout_(std::move(layout)),
        file_(fs, std::move(path), layout_.header_bytes(), layout_.header().file_size, mode),
        at_(layout_.header().data_begin),
        buffer_(staging_bytes.count) {
    segments_.push_back(segment_of(layout_.header_bytes()));
  }

  /// The next piece of the current tensor.
  /// Errors   what writing says, with path and offset.
  void append(std::span<std::byte const> data) {
    checksum_.add(data);
    while (!data.empty()) {
      if (filled_ == 0 && data.size() >= buffer_.size()) {  // large enough to go as it is
        file_.write(at_, data);
        at_ += bytes{data.size()};
        return;
      }
      std::size_t const take = std::min(data.size(), buffer_.size() - filled_);
      std::copy_n(data.begin(), take, buffer_.begin() + static_cast<std::ptrdiff_t>(filled_));
      filled_ += take;
      data = data.subspan(take);
      if (filled_ == buffer_.size()) flush();
    }
  }
  /// The current tensor is complete; append() goes on with the next.
  /// Pre      it has got exactly its bytes.
  void end_tensor() {
    SPILLWAY_EXPECTS(tensor_ < layout_.header().entries.size());
    safetensors_entry const& entry = layout_.header().entries[tensor_++];
    SPILLWAY_EXPECTS(checksum_.length().count == entry.end - entry.begin);
    if (entry.end != entry.begin) segments_.push_back(checksum_.take());
  }

  /// Make it durable and valid. Afterwards the writer is done.
  /// Pre      every tensor is complete.
  /// Errors   what writing and syncing say. The file is then lost: its contents are unknown.
  [[nodiscard]] file_record finish(std::string name) {
    SPILLWAY_EXPECTS(tensor_ == layout_.header().entries.size());
    flush();
    file_.finish(layout_.header_bytes());
    return {.name = std::move(name), .size = layout_.header().file_size, .segments = std::move(segments_)};
  }

 private:
  static constexpr bytes staging_bytes{4ULL << 20U};

  void flush() {
    file_.write(at_, std::span{buffer_}.first(filled_));
    at_ += bytes{filled_};
    filled_ = 0;
  }

  safetensors_layout layout_;
  detail::open_safetensors<FS> file_;
  bytes at_;
  std::vector<std::byte> buffer_;
  std::size_t filled_ = 0;
  std::size_t tensor_ = 0;
  segment_builder checksum_{};
  std::vector<checked_segment> segments_{};
};

}  // namespace spillway::inline v0
