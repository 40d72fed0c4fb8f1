// SPDX-License-Identifier: Apache-2.0
/// What a job will hold, by budget, before anything is allocated.
#pragma once

#include <spillway/core/error.hpp>
#include <spillway/optimizer/chunk_updater_concept.hpp>
#include <spillway/pipeline/gradient_store.hpp>
#include <spillway/pipeline/pipeline_options.hpp>

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace spillway::inline v0 {

/// Places with a budget of their own.
enum class budget : std::uint8_t { device, host, file };
[[nodiscard]] constexpr std::string_view name_of(budget b) noexcept {
  constexpr std::array<std::string_view, 3> names{"device", "host", "file"};
  return names[static_cast<std::size_t>(b)];
}

/// A sum of named amounts against budgets. Exact sizes, in one place: what is allocated later is what is written here.
class memory_plan {
 public:
  void add(budget where, std::string what, bytes amount) { items_.push_back({where, std::move(what), amount}); }
  void limit(budget where, bytes amount) noexcept { limits_[static_cast<std::size_t>(where)] = amount; }

  struct item {
    budget where;
    std::string what;
    bytes amount;
  };
  [[nodiscard]] std::vector<item> const& items() const noexcept { return items_; }
  [[nodiscard]] bytes total(budget where) const noexcept {
    bytes sum{};
    for (item const& i : items_) {
      if (i.where == where) sum += i.amount;
    }
    return sum;
  }
  [[nodiscard]] bytes limit(budget where) const noexcept { return limits_[static_cast<std::size_t>(where)]; }

  /// Errors  errc::capacity_exceeded naming each budget that is short, by how much, and what needs it.
  void require() const {
    std::string text;
    bytes wanted{};
    bytes got{};
    for (budget const b : {budget::device, budget::host, budget::file}) {
      if (total(b) <= limit(b)) continue;
      if (text.empty()) {
        wanted = total(b);
        got = limit(b);
      } else {
        text += "; ";
      }
      text += "the " + std::string(name_of(b)) + " budget of " + to_string(limit(b)) + " is short by " +
              to_string(total(b) - limit(b)) + ":";
      for (item const& i : items_) {
        if (i.where == b) text += " " + i.what + " " + to_string(i.amount) + ",";
      }
      text += " in all " + to_string(total(b));
    }
    if (!text.empty())
      throw error{errc::capacity_exceeded, {.where = "memory plan", .wanted = wanted, .got = got, .detail = text}};
  }

 private:
  std::vector<item> items_{};
  std::array<bytes, 3> limits_{bytes{~std::uint64_t{0}}, bytes{~std::uint64_t{0}}, bytes{~std::uint64_t{0}}};
};

/// Bytes of one staging slot: the state arrays of the largest chunk at staggered starts, then its narrow parameters.
[[nodiscard]] inline bytes slot_size(updater_schema const& schema, chunk_plan const& chunks) {
  bytes const state = slot_bytes(schema.arrays, chunks.largest());
  return round_up(state, array_alignment) + chunks.largest() * block_elements * 4_B;
}

/// Add what an offload_pipeline of this shape holds besides its tiers.
inline void add_pipeline(memory_plan& plan, parameter_layout const& layout, updater_schema const& schema,
                         chunk_plan const& chunks, pipeline_options const& options) {
  plan.add(budget::host, "staging slots", options.slots * slot_size(schema, chunks));
  plan.add(budget::host, "gradients", gradient_store_bytes(layout, options.micro_batches));
  if (bytes const scratch = chunks.largest() * block_elements * schema.scratch_per_element; scratch.count != 0) {
    plan.add(budget::host, "updater scratch", scratch);
  }
  if (schema.needs_parameter) plan.add(budget::host, "parameter mirror", tensor_offsets(layout, false).total());
}

}  // namespace spillway::inline v0
