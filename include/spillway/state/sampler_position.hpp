// SPDX-License-Identifier: Apache-2.0
/// Where a data loader stands, in a form that outlives a change of ranks.
#pragma once

#include <cstdint>

namespace spillway::inline v0 {

/// The order of samples is a pure function of the seed; the position counts samples that training has consumed, over all ranks and
/// epochs, never those merely fetched. Epoch and place in it follow by division, so the end of an epoch is no special case.
struct sampler_position {
  std::uint64_t seed = 0;
  std::uint64_t samples_drawn = 0;

  template <class Visitor>
  void visit_state(Visitor& visit) {
    visit("seed", seed);
    visit("samples_drawn", samples_drawn);
  }
  friend constexpr bool operator==(sampler_position const&, sampler_position const&) noexcept = default;
};

}  // namespace spillway::inline v0
