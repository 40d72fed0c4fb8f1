// SPDX-License-Identifier: Apache-2.0
/// Where everything lies in a generation file: a safetensors file whose data are whole chunks.
#pragma once

#include <spillway/core/bytes.hpp>
#include <spillway/core/digest.hpp>
#include <spillway/core/error.hpp>
#include <spillway/durable/checked_safetensors.hpp>
#include <spillway/format/safetensors_layout.hpp>
#include <spillway/layout/chunk_plan.hpp>
#include <spillway/layout/parameter_layout.hpp>
#include <spillway/layout/stored_array.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace spillway::inline v0 {

/// What binds a generation to its save and says what its bytes mean.
struct generation_identity {
  hash128 save_id{};
  std::string rule{};  ///< kernel and rounding, as SpilledState::rule() gives it
};

/// Bytes of a run that the file shows as a tensor: true elements of a typed array, whole blocks of another.
[[nodiscard]] inline bytes shown_bytes(stored_array const& array, run const& part) noexcept {
  if (array.typed()) return part.count * size_of(array.type);
  return bytes{blocks_for(part.count) * array.bytes_per_block};
}

/// A pure function of its arguments. The data section starts on a multiple of 4096 B and holds, for each chunk, each stored array,
/// padded to 4096 B. Each run of each array is a tensor `parameter/array/first-last` (elements of the parameter, half open); the
/// bytes after it, when there are any, are a tensor `~pad/chunk/array/run` of U8: no hole.
/// Threads  immutable.
class generation_layout {
 public:
  /// Errors   format_errc::header_too_large when the header would pass 100 MB: larger chunks cure that; errc::layout_mismatch
  ///          for arrays without name, with '/' in it, or twice; the other codes of safetensors_layout.
  generation_layout(parameter_layout const& layout, chunk_plan const& plan, std::span<stored_array const> arrays,
                    generation_identity const& identity)
      : arrays_(arrays.begin(), arrays.end()), file_(make(layout, plan, arrays_, identity)) {
    bytes at = file_.header().data_begin;
    for (chunk const& c : plan.chunks()) {
      places_.push_back({at, c.blocks.size()});
      at += dense_bytes(arrays_, c.blocks.size());
    }
  }

  [[nodiscard]] safetensors_header const& header() const noexcept { return file_.header(); }
  [[nodiscard]] std::span<std::byte const> header_bytes() const noexcept { return file_.header_bytes(); }
  [[nodiscard]] std::span<stored_array const> arrays() const noexcept { return arrays_; }
  [[nodiscard]] std::size_t chunks() const noexcept { return places_.size(); }
  [[nodiscard]] bytes size() const noexcept { return file_.header().file_size; }
  /// Where array `array` of chunk `chunk` starts in the file.
  [[nodiscard]] bytes offset(std::size_t chunk, std::size_t array) const noexcept {
    return places_[chunk].offset + dense_offset(arrays_, array, places_[chunk].blocks);
  }
  /// Its length there, padding included.
  [[nodiscard]] bytes length(std::size_t chunk, std::size_t array) const noexcept {
    return array_bytes(arrays_[array], places_[chunk].blocks);
  }

 private:
  struct place {
    bytes offset{};
    std::uint64_t blocks = 0;
  };

  static safetensors_layout make(parameter_layout const& layout, chunk_plan const& plan,
                                 std::span<stored_array const> arrays, generation_identity const& identity) {
    check(arrays);
    std::vector<safetensors_tensor> tensors;
    for (std::size_t c = 0; c < plan.size(); ++c) {
      for (std::size_t a = 0; a < arrays.size(); ++a) append(tensors, layout, plan[c], c, arrays[a]);
    }
    std::string codecs;
    for (stored_array const& array : arrays) codecs += (codecs.empty() ? "" : ",") + array.name + '=' + array.codec;
    safetensors_metadata metadata{{"format", "spillway.generation.1"},
                                  {std::string(save_id_key), to_string(identity.save_id)},
                                  {"spillway.layout", hex(layout.hash())},
                                  {"spillway.rule", identity.rule},
                                  {"spillway.chunk_elements", std::to_string(plan.largest() * block_elements)},
                                  {"spillway.arrays", std::move(codecs)}};
    try {
      return safetensors_layout{tensors, std::move(metadata), {.alignment = array_alignment}};
    } catch (error const& failure) {
      if (failure.code() != format_errc::header_too_large) throw;
      error::context about = failure.about();
      about.where = "generation file";
      about.detail = "a header of " + std::to_string(tensors.size()) + " tensors: choose larger chunks than " +
                     std::to_string(plan.largest() * block_elements) + " elements";
      throw error{failure.code(), std::move(about)};
    }
  }

  static void append(std::vector<safetensors_tensor>& tensors, parameter_layout const& layout, chunk const& c,
                     std::size_t index, stored_array const& array) {
    for (std::size_t r = 0; r < c.runs.size(); ++r) {
      run const& part = c.runs[r];
      std::uint64_t const shown = shown_bytes(array, part).count;
      tensors.push_back({layout[part.tensor].name + '/' + array.name + '/' + std::to_string(part.first) + '-' +
                             std::to_string(part.first + part.count),
                         array.typed() ? array.type : dtype::u8,
                         {array.typed() ? part.count : shown}});
      std::uint64_t const begin = part.offset / block_elements * array.bytes_per_block;
      std::uint64_t const end = r + 1 < c.runs.size() ? c.runs[r + 1].offset / block_elements * array.bytes_per_block
                                                      : array_bytes(array, c.blocks.size()).count;
      if (std::uint64_t const padding = end - begin - shown; padding != 0) {
        tensors.push_back(
            {"~pad/" + std::to_string(index) + '/' + array.name + '/' + std::to_string(r), dtype::u8, {padding}});
      }
    }
  }

  static void check(std::span<stored_array const> arrays) {
    for (std::size_t a = 0; a < arrays.size(); ++a) {
      bool wrong =
          arrays[a].name.empty() || arrays[a].name.find('/') != std::string::npos || arrays[a].bytes_per_block == 0;
      for (std::size_t b = 0; b < a; ++b) wrong = wrong || arrays[b].name == arrays[a].name;
      if (wrong) {
        throw error{errc::layout_mismatch,
                    {.where = "generation file",
                     .detail = "state array \"" + arrays[a].name +
                               "\": a name is there, once, without '/', and a block has bytes"}};
      }
    }
  }
  static std::string hex(std::uint64_t value) { return to_string(hash128{value, 0}).substr(16); }

  std::vector<stored_array> arrays_;
  safetensors_layout file_;
  std::vector<place> places_{};
};

}  // namespace spillway::inline v0
