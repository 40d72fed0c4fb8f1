// SPDX-License-Identifier: Apache-2.0
/// Reads any blocks of any tensor from a generation file, whatever chunks it was written in.
#pragma once

#include <spillway/core/config.hpp>
#include <spillway/durable/checked_safetensors.hpp>
#include <spillway/durable/generation_layout.hpp>

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

namespace spillway::inline v0 {

/// A finished generation. The FileSystem outlives it.
/// Threads  one at a time.
template <FileSystem FS = posix_file_system>
class generation_reader {
 public:
  /// Open the file and find its pieces; `arrays` says how its blocks are stored.
  /// Errors   those of checked_safetensors; durable_errc::not_covered, naming the tensor, when pieces of it leave a hole, overlap or
  ///          have another type or size than `arrays` says.
  generation_reader(FS& fs, std::string const& directory, file_record record, hash128 save_id,
                    std::span<stored_array const> arrays)
      : file_(fs, directory, std::move(record), save_id), arrays_(arrays.begin(), arrays.end()) {
    for (safetensors_entry const& entry : file_.header().entries) place(entry);
    for (auto& [key, pieces] : pieces_) check(key, pieces);
  }

  /// Compare every checksum of the file.
  void verify() { file_.verify(); }
  [[nodiscard]] char const* path() const noexcept { return file_.path(); }

  /// Elements of that parameter that the file holds in that array.
  [[nodiscard]] std::uint64_t elements(std::string const& parameter, std::string const& array) const {
    auto const found = pieces_.find({parameter, array});
    return found == pieces_.end() ? 0 : found->second.back().last;
  }
  /// Parameters of which the file holds any state, by name.
  [[nodiscard]] std::vector<std::string> parameters() const {
    std::vector<std::string> names;
    for (auto const& [key, pieces] : pieces_) {
      if (names.empty() || names.back() != key.first) names.push_back(key.first);
    }
    return names;
  }

  /// Read `count` blocks of a parameter from block `first` on; what lies past its last element is zero.
  /// Pre      `to` is count x bytes_per_block long; the file holds those blocks.
  /// Errors   what reading says, with path and offset.
  void read_blocks(std::string const& parameter, std::string const& array, std::uint64_t first, std::uint64_t count,
                   std::span<std::byte> to) {
    auto const found = pieces_.find({parameter, array});
    SPILLWAY_EXPECTS(found != pieces_.end() && (first + count) <= blocks_for(found->second.back().last));
    std::uint64_t const block = array_named(array)->bytes_per_block;
    SPILLWAY_EXPECTS(to.size() == count * block);
    auto const& pieces = found->second;
    auto part = std::upper_bound(pieces.begin(), pieces.end(), first * block_elements,
                                 [](std::uint64_t element, piece const& p) { return element < p.last; });
    while (!to.empty()) {
      std::uint64_t const skip = (first - part->first / block_elements) * block;
      std::uint64_t const blocks = std::min(count, blocks_for(part->last) - first);
      auto const wanted = static_cast<std::size_t>(blocks * block);
      auto const stored = static_cast<std::size_t>(std::min<std::uint64_t>(wanted, part->size - skip));
      file_.read(bytes{part->begin + skip}, to.first(stored));
      std::fill_n(to.begin() + static_cast<std::ptrdiff_t>(stored), wanted - stored, std::byte{});
      to = to.subspan(wanted);
      first += blocks;
      count -= blocks;
      ++part;
    }
  }

 private:
  struct piece {
    std::uint64_t first = 0;  ///< elements of the parameter, half open
    std::uint64_t last = 0;
    std::uint64_t begin = 0;  ///< in the data section
    std::uint64_t size = 0;
    safetensors_entry const* entry = nullptr;
  };
  using array_key = std::pair<std::string, std::string>;  // parameter, array

  [[noreturn]] void refuse(std::string const& name, std::string const& why) const {
    throw error{durable_errc::not_covered,
                {.where = "generation file", .path = file_.path(), .detail = name + ": " + why}};
  }
  /// "12" -> 12; nothing else.
  static bool number(std::string_view text, std::uint64_t& out) {
    auto const [end, wrong] = std::from_chars(text.data(), text.data() + text.size(), out);
    return wrong == std::errc{} && end == text.data() + text.size() && (text.size() == 1 || text.front() != '0');
  }

  [[nodiscard]] stored_array const* array_named(std::string_view name) const noexcept {
    for (stored_array const& array : arrays_) {
      if (array.name == name) return &array;
    }
    return nullptr;
  }

  void place(safetensors_entry const& entry) {
    std::string_view const name = entry.name;
    std::size_t const range = name.rfind('/');
    if (range == std::string_view::npos || range == 0) refuse(detail::quoted(name), "not a name of a generation file");
    std::size_t const array = name.rfind('/', range - 1);
    std::string_view const last = name.substr(range + 1);
    std::size_t const dash = last.find('-');
    if (array == std::string_view::npos) refuse(detail::quoted(name), "not a name of a generation file");
    if (dash == std::string_view::npos) {  // padding ends in the number of a run, never in a range
      std::uint64_t run = 0;
      if (name.substr(0, 5) != "~pad/" || !number(last, run))
        refuse(detail::quoted(name), "not a name of a generation file");
      return;
    }
    piece found{.begin = entry.begin, .size = entry.end - entry.begin, .entry = &entry};
    if (!number(last.substr(0, dash), found.first) || !number(last.substr(dash + 1), found.last) ||
        found.last < found.first) {
      refuse(detail::quoted(name), "no range of elements");
    }
    pieces_[{std::string(name.substr(0, array)), std::string(name.substr(array + 1, range - array - 1))}].push_back(
        found);
  }

  void check(array_key const& key, std::vector<piece>& pieces) {
    stored_array const* const array = array_named(key.second);
    std::string const name = detail::quoted(key.first + '/' + key.second);
    if (array == nullptr) refuse(name, "the manifest knows no such array");
    std::sort(pieces.begin(), pieces.end(), [](piece const& a, piece const& b) { return a.first < b.first; });
    std::uint64_t covered = 0;
    for (piece const& p : pieces) {
      if (p.first != covered) {
        refuse(name, (p.first < covered ? "element stored twice: " : "element missing: ") + std::to_string(covered));
      }
      if (p.first % block_elements != 0)
        refuse(name, "a piece starts inside a block, at element " + std::to_string(p.first));
      bool const type = p.entry->type == (array->typed() ? array->type : dtype::u8);
      if (!type || p.size != shown_bytes(*array, {.count = p.last - p.first}).count) {
        refuse(name, "stored otherwise than the manifest says, from element " + std::to_string(p.first));
      }
      covered = p.last;
    }
  }

  checked_safetensors<FS> file_;
  std::vector<stored_array> arrays_;
  std::map<array_key, std::vector<piece>> pieces_{};
};

}  // namespace spillway::inline v0
