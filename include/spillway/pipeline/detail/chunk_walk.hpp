// SPDX-License-Identifier: Apache-2.0
/// The chunks that one step visits, in the scheduler's order.
#pragma once

#include <spillway/core/error.hpp>
#include <spillway/scheduler/prefetch_scheduler_concept.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace spillway::inline v0::detail {

class chunk_walk {
 public:
  explicit chunk_walk(std::size_t chunks) : order_(chunks), visited_(chunks) { chunks_.reserve(chunks); }

  /// Asks the scheduler, and keeps the chunks that are `wanted(chunk)`. No allocation.
  /// Errors  errc::invalid_option when the order is no permutation.
  template <PrefetchScheduler S, class Wanted>
  void plan(S& scheduler, step_outline const& outline, Wanted const& wanted) {
    scheduler.order(outline, order_);
    std::fill(visited_.begin(), visited_.end(), false);
    chunks_.clear();
    begun = 0;
    for (std::uint32_t const c : order_) {
      if (c >= order_.size() || visited_[c]) {
        throw error{errc::invalid_option,
                    {.where = "scheduler order", .detail = "chunk " + std::to_string(c) + " is out of range or twice"}};
      }
      visited_[c] = true;
      if (wanted(c)) chunks_.push_back(c);
    }
  }
  [[nodiscard]] std::size_t size() const noexcept { return chunks_.size(); }
  [[nodiscard]] std::uint32_t operator[](std::size_t i) const noexcept { return chunks_[i]; }

  std::size_t begun = 0;  ///< chunks whose read was started

 private:
  std::vector<std::uint32_t> order_;
  std::vector<bool> visited_;
  std::vector<std::uint32_t> chunks_{};
};

}  // namespace spillway::inline v0::detail
