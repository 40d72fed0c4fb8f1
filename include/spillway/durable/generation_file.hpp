// SPDX-License-Identifier: Apache-2.0
/// Writes a generation file, one array of one chunk at a time.
#pragma once

#include <spillway/core/config.hpp>
#include <spillway/durable/file_record.hpp>
#include <spillway/durable/generation_layout.hpp>
#include <spillway/io/file.hpp>

#include <fcntl.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace spillway::inline v0 {

namespace detail {

/// A safetensors file while it is written: created exclusively, its header says length 0, which every reader refuses, until the
/// data are on the medium.
template <FileSystem FS>
class open_safetensors {
 public:
  /// `header` is all of it, the true length in its first eight bytes.
  open_safetensors(FS& fs, std::string path, std::span<std::byte const> header, bytes size, unsigned mode)
      : file_(file<FS>::open(fs, std::move(path), O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode)) {
    try {
      file_.allocate(size);  // a full disk is found here, not after an hour
    } catch (error const& failure) {
      if (failure.code() != std::errc::operation_not_supported) throw;
    }
    std::array<std::byte, 8> const open_length{};
    file_.write_all(bytes{}, open_length);
    file_.write_all(bytes{open_length.size()}, header.subspan(open_length.size()));
  }

  void write(bytes offset, std::span<std::byte const> data) { file_.write_all(offset, data); }

  /// Data, then the true length, each on the medium before the next; then closed.
  void finish(std::span<std::byte const> header) {
    file_.sync_data();
    file_.write_all(bytes{}, header.first(8));
    file_.sync();
    file_.close();
  }

 private:
  file<FS> file_;
};

}  // namespace detail

/// Writes one generation. Until finish() has returned every reader refuses the file. The FileSystem outlives it.
/// Threads  one at a time.
template <FileSystem FS = posix_file_system>
class generation_writer {
 public:
  /// Errors   errno with the path: EEXIST, ENOSPC, ...
  generation_writer(FS& fs, std::string path, generation_layout layout, unsigned mode)
      : layout_(std::move(layout)),
        file_(fs, std::move(path), layout_.header_bytes(), layout_.size(), mode),
        segments_(layout_.chunks() * layout_.arrays().size()) {}

  /// Write array `array` of chunk `chunk`, in any order, each once.
  /// Pre      `data` is layout().length(chunk, array) long, its padding zero.
  /// Errors   what writing says, with path and offset.
  void write(std::size_t chunk, std::size_t array, std::span<std::byte const> data) {
    SPILLWAY_EXPECTS(chunk < layout_.chunks() && array < layout_.arrays().size());
    SPILLWAY_EXPECTS(data.size() == layout_.length(chunk, array).count);
    checked_segment& segment = segments_[chunk * layout_.arrays().size() + array];
    SPILLWAY_EXPECTS(segment.checksums.empty());
    segment = segment_of(data);
    file_.write(layout_.offset(chunk, array), data);
  }

  [[nodiscard]] generation_layout const& layout() const noexcept { return layout_; }

  /// Make it durable and valid. Afterwards the writer is done.
  /// Pre      every array of every chunk was written.
  /// Errors   what syncing says. The file is then lost: its contents are unknown.
  [[nodiscard]] file_record finish(std::string name) {
    file_record record{
        .name = std::move(name), .size = layout_.size(), .segments = {segment_of(layout_.header_bytes())}};
    for (checked_segment& segment : segments_) {
      SPILLWAY_EXPECTS(!segment.checksums.empty());
      record.segments.push_back(std::move(segment));
    }
    file_.finish(layout_.header_bytes());
    return record;
  }

 private:
  generation_layout layout_;
  detail::open_safetensors<FS> file_;
  std::vector<checked_segment> segments_;
};

}  // namespace spillway::inline v0
