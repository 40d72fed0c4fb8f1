// SPDX-License-Identifier: Apache-2.0
/// The digest of a spilled state, whatever chunks and pieces it comes in.
#pragma once

#include <spillway/core/digest.hpp>
#include <spillway/durable/generation_layout.hpp>
#include <spillway/durable/manifest.hpp>
#include <spillway/durable/spilled_state_concept.hpp>
#include <spillway/layout/chunk_plan.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace spillway::inline v0::detail {

/// Counts one array of one chunk: true elements only.
inline void add_chunk_array(state_digest& digest, parameter_layout const& layout, chunk const& c,
                            stored_array const& array, std::span<std::byte const> data) {
  for (run const& part : c.runs) {
    digest.add_blocks(
        "optimizer/" + layout[part.tensor].name + '/' + array.name, part.first / block_elements,
        bytes{array.bytes_per_block},
        data.subspan(part.offset / block_elements * array.bytes_per_block, shown_bytes(array, part).count));
  }
}

/// Counts one parameter that comes in pieces of any size.
class parameter_digest {
 public:
  parameter_digest(tensor_spec const& tensor)
      : name_("parameters/" + tensor.name), block_(block_elements * size_of(tensor.type)) {}

  void add(std::span<std::byte const> data) {
    while (!data.empty()) {
      if (partial_.empty() && data.size() >= block_.count) {
        std::size_t const whole = data.size() / block_.count * block_.count;
        digest_.add_blocks(name_, next_, block_, data.first(whole));
        next_ += whole / block_.count;
        data = data.subspan(whole);
        continue;
      }
      std::size_t const take = std::min<std::size_t>(data.size(), block_.count - partial_.size());
      partial_.insert(partial_.end(), data.begin(), data.begin() + static_cast<std::ptrdiff_t>(take));
      data = data.subspan(take);
      if (partial_.size() == block_.count) flush();
    }
  }
  [[nodiscard]] state_digest finish() {
    if (!partial_.empty() || next_ == 0) flush();
    return digest_;
  }

 private:
  void flush() {
    digest_.add(name_, next_++, partial_);
    partial_.clear();
  }
  std::string name_;
  bytes block_;
  std::vector<std::byte> partial_{};
  std::uint64_t next_ = 0;
  state_digest digest_{};
};

/// Counts a whole spilled state by exporting it once.
template <SpilledState S>
void add_spill(state_digests& digests, S& spill) {
  parameter_layout const& layout = spill.layout();
  std::span<stored_array const> const arrays = spill.arrays();
  for (std::size_t c = 0; c < spill.chunks().size(); ++c) {
    spill.export_chunk(c, [&](std::size_t array, std::span<std::byte const> data) {
      add_chunk_array(digests.optimizer, layout, spill.chunks()[c], arrays[array], data);
    });
  }
  for (std::size_t t = 0; t < layout.size(); ++t) {
    parameter_digest parameter{layout[t]};
    spill.export_parameter(t, [&](std::span<std::byte const> data) { parameter.add(data); });
    digests.parameters += parameter.finish();
  }
}

}  // namespace spillway::inline v0::detail
