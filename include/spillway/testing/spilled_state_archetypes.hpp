// SPDX-License-Identifier: Apache-2.0
/// The least that models SpilledState, and a near miss per requirement.
#pragma once

#include <spillway/durable/spilled_state_concept.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace spillway::inline v0::testing {

/// One chunk of nothing. Not copyable, not movable; its calls take what they are given by any kind of reference.
struct minimal_spilled_state {
  minimal_spilled_state() = default;
  minimal_spilled_state(minimal_spilled_state const&) = delete;
  minimal_spilled_state& operator=(minimal_spilled_state const&) = delete;
  ~minimal_spilled_state() = default;

  [[nodiscard]] parameter_layout const& layout() const { return tensors; }
  [[nodiscard]] chunk_plan const& chunks() const { return cut; }
  [[nodiscard]] std::span<stored_array const> arrays() const { return {}; }
  [[nodiscard]] char const* rule() const { return "none"; }
  template <class Sink>
  void export_chunk(std::size_t, Sink const&) {}
  template <class Sink>
  void export_parameter(std::size_t, Sink const&) {}
  void begin_import() {}
  template <class Source>
  void import_chunk(std::size_t, Source const&) {}
  template <class Source>
  void import_parameter(std::size_t, Source const&) {}
  void finish_import() {}
  template <class Visitor>
  void visit_counters(Visitor const& visit) {
    visit("step", step);
  }

  parameter_layout tensors{};
  chunk_plan cut{};
  std::uint64_t step = 0;
};

namespace near_miss {

struct spilled_layout_by_value : minimal_spilled_state {
  [[nodiscard]] parameter_layout layout() const { return tensors; }
};
struct spilled_chunks_by_value : minimal_spilled_state {
  [[nodiscard]] chunk_plan chunks() const { return cut; }
};
struct spilled_chunks_mutable : minimal_spilled_state {
  chunk_plan const& chunks() { return cut; }
};
struct spilled_arrays_writable : minimal_spilled_state {
  [[nodiscard]] std::span<stored_array> arrays() const { return {}; }
};
struct spilled_rule_is_number : minimal_spilled_state {
  [[nodiscard]] std::uint64_t rule() const { return 0; }
};
struct spilled_export_of_one_array : minimal_spilled_state {
  void export_chunk(std::size_t, void (*)(std::span<std::byte const>)) {}
};
struct spilled_without_export_parameter : minimal_spilled_state {
  void export_parameter(std::size_t) {}
};
struct spilled_without_begin : minimal_spilled_state {
  void begin_import() = delete;
};
struct spilled_without_import_chunk : minimal_spilled_state {
  void import_chunk(std::size_t) {}
};
struct spilled_without_import_parameter : minimal_spilled_state {
  void import_parameter() {}
};
struct spilled_without_finish : minimal_spilled_state {
  void finish_import() = delete;
};
struct spilled_without_counters : minimal_spilled_state {
  void visit_counters() {}
};

}  // namespace near_miss
}  // namespace spillway::inline v0::testing
