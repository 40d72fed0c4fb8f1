// SPDX-License-Identifier: Apache-2.0
/// A SpilledState that lives in ordinary memory, small enough to compare whole.
#pragma once

#include <spillway/durable/spilled_state_concept.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace test {

/// Knobs of a test: where export and import fail, and how parameters are cut.
struct spill_faults {
  std::size_t export_throws_at = ~std::size_t{0};  ///< chunk
  std::size_t import_throws_at = ~std::size_t{0};
  std::size_t piece = 1000;  ///< bytes of a parameter handed over at once
};

class memory_spilled_state {
 public:
  memory_spilled_state(std::vector<spillway::tensor_spec> tensors, std::uint64_t chunk_elements,
                       std::vector<spillway::stored_array> arrays = default_arrays(),
                       std::string rule = "test_kernel nearest_even")
      : layout_(std::move(tensors)),
        chunks_(layout_, chunk_elements),
        arrays_(std::move(arrays)),
        rule_(std::move(rule)),
        steps(layout_.size()) {
    for (auto const& c : chunks_.chunks()) {
      for (auto const& array : arrays_) data_.emplace_back(spillway::array_bytes(array, c.blocks.size()).count);
    }
    for (std::size_t t = 0; t < layout_.size(); ++t) {
      parameters_.emplace_back(layout_.elements(t) * spillway::size_of(layout_[t].type).count);
    }
  }

  static std::vector<spillway::stored_array> default_arrays() {
    return {{"master", "float32", spillway::dtype::float32, 4096},
            {"exp_avg", "float32", spillway::dtype::float32, 4096},
            {"exp_avg_sq", "blocks8", spillway::dtype::u8, 1032}};
  }

  /// Fill every true element with bytes that depend on tensor, array, element and seed only; padding stays zero.
  void fill(unsigned seed) {
    for (std::size_t c = 0; c < chunks_.size(); ++c) {
      for (std::size_t a = 0; a < arrays_.size(); ++a) {
        std::uint64_t const block = arrays_[a].bytes_per_block;
        for (auto const& r : chunks_[c].runs) {
          std::uint64_t const size = arrays_[a].typed() ? r.count * spillway::size_of(arrays_[a].type).count
                                                        : spillway::blocks_for(r.count) * block;
          std::byte* const to = array(c, a).data() + r.offset / spillway::block_elements * block;
          std::uint64_t const at = r.first / spillway::block_elements * block;
          for (std::uint64_t i = 0; i < size; ++i) to[i] = value(seed, r.tensor * 10 + a, at + i);
        }
      }
    }
    for (std::size_t t = 0; t < parameters_.size(); ++t) {
      for (std::size_t i = 0; i < parameters_[t].size(); ++i) parameters_[t][i] = value(seed, 1000 + t, i);
      steps[t] = seed * 100 + t;
    }
  }
  [[nodiscard]] std::vector<std::byte>& array(std::size_t chunk, std::size_t a) {
    return data_[chunk * arrays_.size() + a];
  }
  [[nodiscard]] std::vector<std::vector<std::byte>> const& contents() const noexcept { return data_; }
  [[nodiscard]] std::vector<std::vector<std::byte>> const& parameters() const noexcept { return parameters_; }
  [[nodiscard]] bool importing() const noexcept { return importing_; }

  // SpilledState
  [[nodiscard]] spillway::parameter_layout const& layout() const noexcept { return layout_; }
  [[nodiscard]] spillway::chunk_plan const& chunks() const noexcept { return chunks_; }
  [[nodiscard]] std::span<spillway::stored_array const> arrays() const noexcept { return arrays_; }
  [[nodiscard]] std::string rule() const { return rule_; }
  template <class Sink>
  void export_chunk(std::size_t chunk, Sink sink) {
    if (chunk == faults.export_throws_at) throw std::runtime_error("export of a chunk fails");
    for (std::size_t a = 0; a < arrays_.size(); ++a) sink(a, std::span<std::byte const>{array(chunk, a)});
  }
  template <class Sink>
  void export_parameter(std::size_t tensor, Sink sink) {
    for_each_piece(tensor, [&](std::span<std::byte> piece) { sink(std::span<std::byte const>{piece}); });
  }
  void begin_import() { importing_ = true; }
  template <class Source>
  void import_chunk(std::size_t chunk, Source source) {
    if (chunk == faults.import_throws_at) throw std::runtime_error("import of a chunk fails");
    for (std::size_t a = 0; a < arrays_.size(); ++a) source(a, std::span<std::byte>{array(chunk, a)});
  }
  template <class Source>
  void import_parameter(std::size_t tensor, Source source) {
    for_each_piece(tensor, [&](std::span<std::byte> piece) { source(piece); });
  }
  void finish_import() { importing_ = false; }
  template <class Visitor>
  void visit_counters(Visitor const& visit) {
    visit("steps", steps);
  }

  spill_faults faults{};

 private:
  static std::byte value(unsigned seed, std::size_t which, std::uint64_t at) {
    return static_cast<std::byte>(((at + 1) * 2654435761U + which * 40503U + seed * 97U) >> 8U);
  }
  template <class Call>
  void for_each_piece(std::size_t tensor, Call call) {
    std::span<std::byte> left{parameters_[tensor]};
    while (!left.empty()) {
      auto const piece = left.first(std::min(faults.piece, left.size()));
      call(piece);
      left = left.subspan(piece.size());
    }
  }

  spillway::parameter_layout layout_;
  spillway::chunk_plan chunks_;
  std::vector<spillway::stored_array> arrays_;
  std::string rule_;
  std::vector<std::vector<std::byte>> data_{};
  std::vector<std::vector<std::byte>> parameters_{};
  bool importing_ = false;

 public:
  std::vector<std::uint64_t> steps;
};
static_assert(spillway::SpilledState<memory_spilled_state>);

/// What a training program has: a little of each kind, and a reference to a spilled state.
inline std::vector<spillway::tensor_spec> small_model() {
  return {{"wte", {70, 40}, spillway::dtype::bfloat16, 0},
          {"h/0/ln", {7}, spillway::dtype::float32, 1},
          {"h/0/w", {3, 1024}, spillway::dtype::bfloat16, 0},
          {"scale", {}, spillway::dtype::float32, 1},
          {"none", {0, 5}, spillway::dtype::float32, 1}};
}

}  // namespace test
