// SPDX-License-Identifier: Apache-2.0
/// How a partition of the flat space is cut into the chunks that move and are updated.
#pragma once

#include <spillway/core/error.hpp>
#include <spillway/layout/parameter_layout.hpp>

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace spillway::inline v0 {

/// What an update needs to see at once.
enum class granularity : std::uint8_t {
  element,  ///< any range of a tensor
  tensor,   ///< the whole tensor: chunks and partitions are cut at tensors
};

/// A range of blocks, [first, last).
struct block_range {
  std::uint64_t first = 0;
  std::uint64_t last = 0;
  [[nodiscard]] constexpr std::uint64_t size() const noexcept { return last - first; }
  friend constexpr bool operator==(block_range, block_range) noexcept = default;
};

/// The part of a chunk that belongs to one tensor. Starts on a block of the tensor; only true elements are counted.
struct run {
  std::size_t tensor = 0;
  std::uint64_t first = 0;   ///< first element within the tensor, a multiple of block_elements
  std::uint64_t count = 0;   ///< true elements
  std::uint64_t offset = 0;  ///< elements from the start of the chunk, a multiple of block_elements
};

/// One unit of movement.
struct chunk {
  block_range blocks{};
  std::vector<run> runs{};
  [[nodiscard]] std::uint64_t elements() const noexcept { return blocks.size() * block_elements; }  ///< with padding
};

/// All chunks of one partition, in order of the flat space. A pure function of its arguments.
/// Threads: immutable.
class chunk_plan {
 public:
  chunk_plan() = default;
  /// Cut `partition` into chunks of at most `elements` (rounded down to blocks); a tensor whose group has granularity::tensor
  /// is never cut: one that is larger gets a chunk of its own.
  /// `by_group` gives the granularity of each group; groups beyond its end are as the last one, by element when it is empty.
  /// Errors  errc::invalid_option when `elements` is under one block; errc::layout_mismatch when the partition cuts a tensor
  ///         that may not be cut.
  chunk_plan(parameter_layout const& layout, std::uint64_t elements, std::span<granularity const> by_group = {},
             block_range partition = {0, ~std::uint64_t{0}}) {
    std::uint64_t const most = elements / block_elements;
    if (most == 0) {
      throw error{errc::invalid_option,
                  {.where = "chunk_plan",
                   .detail = "a chunk of " + std::to_string(elements) + " elements is less than one block of 1024"}};
    }
    partition.last = std::min(partition.last, layout.blocks());
    partition.first = std::min(partition.first, partition.last);
    for (std::size_t tensor = 0; tensor < layout.size(); ++tensor) {
      std::uint64_t const begin = layout.first_block(tensor);
      std::uint64_t const end = begin + blocks_for(layout.elements(tensor));
      std::uint64_t from = std::max(begin, partition.first);
      std::uint64_t const to = std::min(end, partition.last);
      if (from >= to) continue;
      std::uint32_t const group = layout[tensor].group;
      bool const whole =
          !by_group.empty() && (group < by_group.size() ? by_group[group] : by_group.back()) == granularity::tensor;
      if (whole && (from != begin || to != end)) {
        throw error{errc::layout_mismatch,
                    {.where = "chunk_plan",
                     .detail = "the partition cuts tensor " + layout[tensor].name + ", which must stay whole"}};
      }
      while (from < to) {
        std::uint64_t const room = chunks_.empty() ? 0 : most - std::min(most, chunks_.back().blocks.size());
        if (room == 0 || (whole && room < to - from)) chunks_.push_back({{from, from}, {}});
        chunk& last = chunks_.back();
        std::uint64_t const take = whole ? to - from : std::min(to - from, most - last.blocks.size());
        std::uint64_t const first = (from - begin) * block_elements;
        last.runs.push_back({tensor, first, std::min(take * block_elements, layout.elements(tensor) - first),
                             last.blocks.size() * block_elements});
        last.blocks.last += take;
        from += take;
      }
    }
    for (chunk const& c : chunks_) largest_ = std::max(largest_, c.blocks.size());
  }

  [[nodiscard]] std::size_t size() const noexcept { return chunks_.size(); }
  [[nodiscard]] chunk const& operator[](std::size_t i) const noexcept { return chunks_[i]; }
  [[nodiscard]] std::span<chunk const> chunks() const noexcept { return chunks_; }
  /// Blocks of the largest chunk.
  [[nodiscard]] std::uint64_t largest() const noexcept { return largest_; }
  /// Blocks of all chunks.
  [[nodiscard]] std::uint64_t blocks() const noexcept {
    std::uint64_t sum = 0;
    for (chunk const& c : chunks_) sum += c.blocks.size();
    return sum;
  }

 private:
  std::vector<chunk> chunks_{};
  std::uint64_t largest_ = 0;
};

}  // namespace spillway::inline v0
