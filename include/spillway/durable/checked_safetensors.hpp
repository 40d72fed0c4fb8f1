// SPDX-License-Identifier: Apache-2.0
/// A safetensors file of a checkpoint, opened against the manifest's record of it.
#pragma once

#include <spillway/core/digest.hpp>
#include <spillway/core/error.hpp>
#include <spillway/durable/durable_errc.hpp>
#include <spillway/durable/file_record.hpp>
#include <spillway/format/safetensors.hpp>
#include <spillway/io/file.hpp>

#include <fcntl.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace spillway::inline v0 {

/// The key under which every file of a save carries its id.
inline constexpr std::string_view save_id_key = "spillway.save_id";

namespace detail {
[[nodiscard]] inline std::string const* metadata_value(safetensors_header const& header,
                                                       std::string_view key) noexcept {
  for (auto const& [name, value] : header.metadata) {
    if (name == key) return &value;
  }
  return nullptr;
}
}  // namespace detail

/// Reads tensors of a file that was checked against its record. The FileSystem outlives it.
/// Threads  one at a time.
template <FileSystem FS = posix_file_system>
class checked_safetensors {
 public:
  /// Open it: size, header checksum, strict parse and save id are checked, data are not yet.
  /// Errors   durable_errc: file_missing, file_size, checksum_mismatch, save_id_mismatch; format_errc; errno; each with the path.
  checked_safetensors(FS& fs, std::string const& directory, file_record record, hash128 save_id)
      : record_(std::move(record)), file_(open(fs, directory + '/' + record_.name)) {
    bytes const size = file_.size();
    if (size != record_.size) {
      throw error{durable_errc::file_size,
                  {.where = "checkpoint file", .path = file_.path(), .wanted = record_.size, .got = size}};
    }
    // The first segment is the header: the writer made it so, and the parser below checks the header's own length against it.
    bytes const head = record_.segments.empty() ? bytes{} : record_.segments.front().length;
    if (head > safetensors_limits{}.header + bytes{8}) {
      throw error{format_errc::header_too_large, {.where = "checkpoint file", .path = file_.path(), .wanted = head}};
    }
    std::vector<std::byte> text(head.count);
    file_.read_exact(bytes{}, text);
    if (!text.empty() && segment_of(text) != record_.segments.front()) refuse_checksum(0, "in the header");
    header_ = parse_safetensors_header(text, size.count, {}, file_.path());
    std::string const* const id = detail::metadata_value(header_, save_id_key);
    if (id == nullptr || *id != to_string(save_id)) {
      throw error{durable_errc::save_id_mismatch,
                  {.where = "checkpoint file",
                   .path = file_.path(),
                   .detail = "manifest " + to_string(save_id) + ", file " + (id == nullptr ? "none" : *id)}};
    }
    by_name_.resize(header_.entries.size());
    for (std::size_t i = 0; i < by_name_.size(); ++i) by_name_[i] = i;
    std::sort(by_name_.begin(), by_name_.end(),
              [this](std::size_t a, std::size_t b) { return header_.entries[a].name < header_.entries[b].name; });
  }

  [[nodiscard]] safetensors_header const& header() const noexcept { return header_; }
  [[nodiscard]] char const* path() const noexcept { return file_.path(); }

  /// Read the whole file and compare every checksum.
  /// Errors   durable_errc::checksum_mismatch with path, offset and tensor; what reading says.
  /// Cost     one sequential read; at most 4 MiB of memory.
  void verify() {
    std::uint64_t longest = 0;
    for (checked_segment const& segment : record_.segments) longest = std::max(longest, segment.length.count);
    std::vector<std::byte> buffer(static_cast<std::size_t>(std::min(longest, 4 * checksum_bytes.count)));
    std::uint64_t at = 0;
    for (checked_segment const& segment : record_.segments) {
      std::uint64_t done = 0;
      std::size_t index = 0;
      while (done < segment.length.count) {
        auto piece = std::span{buffer}.first(
            static_cast<std::size_t>(std::min<std::uint64_t>(buffer.size(), segment.length.count - done)));
        file_.read_exact(bytes{at + done}, piece);
        done += piece.size();
        while (!piece.empty()) {
          auto const part =
              piece.first(static_cast<std::size_t>(std::min<std::uint64_t>(piece.size(), checksum_bytes.count)));
          if (crc32c(part) != segment.checksums[index]) {
            std::uint64_t const where = at + index * checksum_bytes.count;
            refuse_checksum(where, described(where));
          }
          ++index;
          piece = piece.subspan(part.size());
        }
      }
      at += segment.length.count;
    }
  }

  /// Bytes of the data section, from `offset` on.
  void read(bytes offset, std::span<std::byte> to) { file_.read_exact(header_.data_begin + offset, to); }

  /// The tensor with that name; nullptr when there is none.
  [[nodiscard]] safetensors_entry const* find(std::string_view name) const noexcept {
    auto const found = std::lower_bound(
        by_name_.begin(), by_name_.end(), name,
        [this](std::size_t i, std::string_view wanted) { return header_.entries[i].name.compare(wanted) < 0; });
    if (found == by_name_.end() || header_.entries[*found].name != name) return nullptr;
    return &header_.entries[*found];
  }

 private:
  static file<FS> open(FS& fs, std::string path) {
    try {
      // Not blocked by a pipe that someone put there.
      return file<FS>::open(fs, path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    } catch (error const& failure) {
      if (failure.code() != std::errc::no_such_file_or_directory) throw;
      throw error{durable_errc::file_missing, {.where = "checkpoint file", .path = std::move(path)}};
    }
  }
  [[noreturn]] void refuse_checksum(std::uint64_t offset, std::string where) const {
    throw error{durable_errc::checksum_mismatch,
                {.where = "checkpoint file", .path = file_.path(), .offset = offset, .detail = std::move(where)}};
  }
  [[nodiscard]] std::string described(std::uint64_t offset) const {
    if (offset < header_.data_begin.count) return "in the header";
    offset -= header_.data_begin.count;
    for (safetensors_entry const& entry : header_.entries) {
      if (offset < entry.end) return "in the MiB that starts in tensor " + detail::quoted(entry.name);
    }
    return "after the last tensor";
  }

  file_record record_;
  file<FS> file_;
  safetensors_header header_{};
  std::vector<std::size_t> by_name_{};
};

}  // namespace spillway::inline v0
