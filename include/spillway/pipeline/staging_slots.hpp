// SPDX-License-Identifier: Apache-2.0
/// The pipeline's only staging memory: slots that hold one chunk each while it moves.
#pragma once

#include <spillway/device/device_concept.hpp>
#include <spillway/io/huge_buffer.hpp>
#include <spillway/optimizer/chunk_updater_concept.hpp>
#include <spillway/pipeline/detail/any_transfer.hpp>
#include <spillway/pipeline/memory_plan.hpp>

#include <cstdint>
#include <span>
#include <vector>

namespace spillway::inline v0 {

/// One slot and what is in flight on it. `state` starts the arrays (at slot_offset), `parameters` the narrow output.
template <Device D>
struct staging_slot {
  std::byte* state = nullptr;
  std::byte* parameters = nullptr;
  std::vector<detail::any_transfer> reads{};   ///< one an array
  std::vector<detail::any_transfer> writes{};  ///< one an array
  typename D::event uploaded{};                ///< the narrow parameters have left for the device
  std::vector<std::byte*> arrays{};            ///< of the chunk at hand, in the slot or in place
  std::vector<run_view> runs{};                ///< of the chunk at hand
  std::uint32_t chunk = 0;
  double read_began = 0;  ///< 0: nothing of that kind in flight
  double write_began = 0;
  double upload_began = 0;
};

/// All slots, in one buffer of huge pages where the system has them. Allocated once; a steady step allocates nothing.
template <Device D>
class staging_slots {
 public:
  staging_slots(unsigned count, updater_schema const& schema, chunk_plan const& chunks)
      : size_(slot_size(schema, chunks)), memory_(count * size_), slots_(count) {
    std::size_t most_runs = 0;
    for (chunk const& c : chunks.chunks()) most_runs = c.runs.size() > most_runs ? c.runs.size() : most_runs;
    bytes const state = round_up(slot_bytes(schema.arrays, chunks.largest()), array_alignment);
    for (unsigned i = 0; i < count; ++i) {
      staging_slot<D>& s = slots_[i];
      s.state = memory_.data() + (i * size_).count;
      s.parameters = s.state + state.count;
      s.reads.resize(schema.arrays.size());
      s.writes.resize(schema.arrays.size());
      s.arrays.resize(schema.arrays.size());
      s.runs.reserve(most_runs);
    }
  }
  [[nodiscard]] std::size_t size() const noexcept { return slots_.size(); }
  [[nodiscard]] staging_slot<D>& operator[](std::size_t i) noexcept { return slots_[i]; }
  [[nodiscard]] huge_buffer const& memory() const noexcept { return memory_; }

 private:
  bytes size_;
  huge_buffer memory_;
  std::vector<staging_slot<D>> slots_;
};

}  // namespace spillway::inline v0
