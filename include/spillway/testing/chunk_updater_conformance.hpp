// SPDX-License-Identifier: Apache-2.0
/// What a ChunkUpdater that works in host memory promises beyond what the compiler checks, as a list of broken laws. For users'
/// own updaters too.
#pragma once

#include <spillway/core/bf16.hpp>
#include <spillway/io/huge_buffer.hpp>
#include <spillway/layout/chunk_plan.hpp>
#include <spillway/optimizer/chunk_updater_concept.hpp>
#include <spillway/testing/detail/law_list.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace spillway::inline v0::testing {

namespace detail {

/// Tensors with odd ends, of both types.
[[nodiscard]] inline parameter_layout updater_check_layout() {
  return parameter_layout{{{"a", {5, 1031}, dtype::bfloat16, 0},
                           {"b", {1}, dtype::float32, 0},
                           {"c", {1023}, dtype::bfloat16, 0},
                           {"d", {2, 512}, dtype::float32, 0},
                           {"e", {1025}, dtype::float32, 0},
                           {"f", {7}, dtype::bfloat16, 0},
                           {"g", {40001}, dtype::bfloat16, 0}}};
}

/// A model whose state lies in chunks of ordinary memory, with marks around and behind everything that may be written.
template <ChunkUpdater U>
class chunked_model {
 public:
  chunked_model(U& updater, std::uint64_t chunk_elements)
      : updater_(&updater),
        layout_(updater_check_layout()),
        chunks_(layout_, chunk_elements, updater.schema().by_group) {
    for (chunk const& c : chunks_.chunks()) {
      for (stored_array const& array : updater.schema().arrays) {
        memory_.emplace_back(array_bytes(array, c.blocks.size()));
        std::memset(memory_.back().data(), std::to_integer<int>(mark), memory_.back().size().count);
      }
    }
    for (std::size_t t = 0; t < layout_.size(); ++t) {
      parameters_.emplace_back(guard + parameter_size(t) + guard, mark);
      gradients_.emplace_back();
    }
  }
  void initialise() {
    std::vector<std::vector<float>> masters(layout_.size());
    for (std::size_t t = 0; t < layout_.size(); ++t) masters[t] = numbers(t, layout_.elements(t));
    each_chunk([&](chunk const& c, chunk_view const& view) {
      std::vector<float const*> starts;
      for (run const& r : c.runs) starts.push_back(masters[r.tensor].data() + r.first);
      updater_->initialise(view, starts, {});
    });
  }
  /// A gradient for every tensor of `present`, or for all when it is empty. `wide`: as float32 even where the tensor is bf16.
  void step(std::uint64_t number, std::vector<std::size_t> const& present = {}, float factor = 1, bool wide = false) {
    for (std::size_t t = 0; t < layout_.size(); ++t) {
      gradients_[t].clear();
      if (!present.empty() && std::find(present.begin(), present.end(), t) == present.end()) continue;
      auto values = numbers(100 * number + t, layout_.elements(t));
      for (float& v : values) v = widen(narrow(v)) * factor;
      gradients_[t].resize(values.size() * (wide || layout_[t].type == dtype::float32 ? 4U : 2U));
      for (std::size_t e = 0; e < values.size(); ++e) {
        if (gradients_[t].size() == values.size() * 4) {
          std::memcpy(&gradients_[t][e * 4], &values[e], 4);
        } else {
          bf16 const v = narrow(values[e]);
          std::memcpy(&gradients_[t][e * 2], &v, 2);
        }
      }
    }
    number_ = number;
    auto const before = gradients_;
    each_chunk(
        [&](chunk const&, chunk_view const& view) { updater_->update(view, {.gradient_scale = 1 / factor}, {}); });
    gradients_changed_ = gradients_changed_ || before != gradients_;
  }
  /// The true elements of every array and parameter of a tensor, one after the other, whatever the chunks are.
  [[nodiscard]] std::vector<std::byte> tensor(std::size_t t) const {
    std::vector<std::byte> out;
    auto const& arrays = updater_->schema().arrays;
    for (std::size_t a = 0; a < arrays.size(); ++a) {
      for (std::size_t c = 0; c < chunks_.size(); ++c) {
        for (run const& r : chunks_[c].runs) {
          if (r.tensor != t) continue;
          auto const* const from =
              memory_[c * arrays.size() + a].data() + r.offset / block_elements * arrays[a].bytes_per_block;
          out.insert(out.end(), from, from + true_bytes(arrays[a], r.count));
        }
      }
    }
    out.insert(out.end(), parameters_[t].begin() + guard, parameters_[t].end() - guard);
    return out;
  }
  [[nodiscard]] std::vector<std::vector<std::byte>> everything() const {
    std::vector<std::vector<std::byte>> out;
    for (std::size_t t = 0; t < layout_.size(); ++t) out.push_back(tensor(t));
    return out;
  }
  /// What was written that may not be; empty: nothing.
  [[nodiscard]] std::string damage() const {
    auto const& arrays = updater_->schema().arrays;
    for (std::size_t c = 0; c < chunks_.size(); ++c) {
      for (std::size_t a = 0; a < arrays.size(); ++a) {
        auto written = std::vector<bool>(memory_[c * arrays.size() + a].size().count, false);
        for (run const& r : chunks_[c].runs) {
          auto const first = r.offset / block_elements * arrays[a].bytes_per_block;
          for (std::size_t i = 0; i < true_bytes(arrays[a], r.count); ++i) written[first + i] = true;
        }
        for (std::size_t i = 0; i < written.size(); ++i) {
          if (!written[i] && memory_[c * arrays.size() + a].data()[i] != mark)
            return "padding of array " + arrays[a].name;
        }
      }
    }
    for (std::size_t t = 0; t < layout_.size(); ++t) {
      auto const& p = parameters_[t];
      if (!std::all_of(p.begin(), p.begin() + guard, is_mark) || !std::all_of(p.end() - guard, p.end(), is_mark)) {
        return "memory beside parameter " + layout_[t].name;
      }
    }
    return gradients_changed_ ? "a gradient" : "";
  }
  [[nodiscard]] parameter_layout const& layout() const noexcept { return layout_; }
  /// From -1 to 1.
  [[nodiscard]] static std::vector<float> numbers(std::uint64_t seed, std::uint64_t count) {
    std::vector<std::byte> raw(count * 2);
    fill_pattern(raw, seed);
    std::vector<float> out(count);
    for (std::size_t e = 0; e < count; ++e) {
      out[e] =
          static_cast<float>(std::to_integer<int>(raw[2 * e]) * 256 + std::to_integer<int>(raw[2 * e + 1]) - 32768) /
          32768.0F;
    }
    return out;
  }

 private:
  static constexpr std::byte mark{0xa5};
  static constexpr std::ptrdiff_t guard = 64;
  static bool is_mark(std::byte b) noexcept { return b == mark; }
  static std::size_t true_bytes(stored_array const& array, std::uint64_t count) noexcept {
    return array.typed() ? count * size_of(array.type).count : blocks_for(count) * array.bytes_per_block;
  }
  [[nodiscard]] std::size_t parameter_size(std::size_t t) const noexcept {
    return (layout_.elements(t) * size_of(layout_[t].type)).count;
  }
  template <class Call>
  void each_chunk(Call const& call) {
    std::size_t const arrays = updater_->schema().arrays.size();
    for (std::size_t c = 0; c < chunks_.size(); ++c) {
      std::vector<std::byte*> starts;
      for (std::size_t a = 0; a < arrays; ++a) starts.push_back(memory_[c * arrays + a].data());
      std::vector<run_view> runs;
      for (run const& r : chunks_[c].runs) {
        tensor_spec const& spec = layout_[r.tensor];
        auto& g = gradients_[r.tensor];
        bool const wide = g.size() == layout_.elements(r.tensor) * 4;
        runs.push_back({.offset = r.offset,
                        .count = r.count,
                        .group = spec.group,
                        .step = number_,
                        .shape = spec.shape,
                        .gradient_type = wide ? dtype::float32 : dtype::bfloat16,
                        .parameter_type = spec.type,
                        .gradient = g.empty() ? nullptr : g.data() + r.first * (wide ? 4 : 2),
                        .parameter = parameters_[r.tensor].data() + guard + (r.first * size_of(spec.type)).count});
      }
      call(chunks_[c], chunk_view{starts, runs});
    }
  }

  U* updater_;
  parameter_layout layout_;
  chunk_plan chunks_;
  std::vector<huge_buffer> memory_{};
  std::vector<std::vector<std::byte>> parameters_{};
  std::vector<std::vector<std::byte>> gradients_{};
  std::uint64_t number_ = 1;
  bool gradients_changed_ = false;
};

}  // namespace detail

/// Tries the laws of ChunkUpdater on an updater that works in host memory. The broken laws, each with what was seen; empty: it
/// passes.
/// Errors  none of the updater's: what it throws is a broken law.
template <ChunkUpdater U>
[[nodiscard]] std::vector<std::string> check_chunk_updater(U& updater) {
  using model = detail::chunked_model<U>;
  constexpr std::uint64_t whole = std::uint64_t{1} << 20U;
  detail::law_list laws;
  updater_schema const& schema = updater.schema();
  laws.law("schema", [&] {
    std::set<std::string> names;
    for (stored_array const& array : schema.arrays) {
      laws.expect(names.insert(array.name).second, "two arrays are named " + array.name);
      laws.expect(array.bytes_per_block > 0 && !array.codec.empty(),
                  "array " + array.name + " has no codec or no bytes");
    }
    laws.expect(!schema.arrays.empty() && schema.arrays.front().name == "master", "the first array is not the master");
    laws.expect(!schema.kernel.empty(), "the update rule has no name");
    laws.expect(!schema.on_device, "it works on a device, and this suite in host memory");
  });
  if (schema.on_device || schema.arrays.empty()) return laws.take();

  laws.law("initialise", [&] {
    model m{updater, whole};
    m.initialise();
    for (std::size_t t = 0; t < m.layout().size(); ++t) {
      auto const values = model::numbers(t, m.layout().elements(t));
      std::vector<std::byte> const all = m.tensor(t);
      std::size_t at = 0;
      for (std::size_t a = 0; a < schema.arrays.size(); ++a) {
        if (schema.arrays[a].codec != "float32") return;
        std::vector<float> const wanted = a == 0 ? values : std::vector<float>(values.size(), 0.0F);
        laws.expect(std::memcmp(&all[at], wanted.data(), values.size() * 4) == 0,
                    "array " + schema.arrays[a].name + " is not the given master, or not zero");
        at += values.size() * 4;
      }
      for (std::size_t e = 0; e < values.size(); ++e) {
        bf16 const half =
            schema.rule == rounding::nearest_even ? narrow(values[e]) : narrow<rounding::nearest_away>(values[e]);
        bool const right = m.layout()[t].type == dtype::float32 ? std::memcmp(&all[at + 4 * e], &values[e], 4) == 0
                                                                : std::memcmp(&all[at + 2 * e], &half, 2) == 0;
        if (!right) return laws.expect(false, "a parameter of " + m.layout()[t].name + " is not the rounded master");
      }
    }
  });
  model reference{updater, whole};
  laws.law("update", [&] {
    reference.initialise();
    auto const before = reference.everything();
    for (std::uint64_t number = 1; number <= 3; ++number) reference.step(number);
    laws.expect(before != reference.everything(), "three steps change nothing");
    laws.expect(reference.damage().empty(), "something was written that is not an element: " + reference.damage());
  });
  auto const same_as_reference = [&](std::uint64_t chunk_elements, float factor, bool wide, std::string const& what) {
    model m{updater, chunk_elements};
    m.initialise();
    for (std::uint64_t number = 1; number <= 3; ++number) m.step(number, {}, factor, wide);
    laws.expect(m.everything() == reference.everything(), what + " gives other bits");
    laws.expect(m.damage().empty(), what + ": something was written that is not an element: " + m.damage());
  };
  laws.law("cuts", [&] {
    for (std::uint64_t const blocks : {1U, 2U, 3U, 7U, 33U}) {
      same_as_reference(blocks * block_elements, 1, false, "chunks of " + std::to_string(blocks) + " blocks");
    }
  });
  laws.law("gradients", [&] {
    same_as_reference(whole, 1, true, "the same gradient as float32");
    same_as_reference(whole, 64, false, "a scaled gradient with the inverse scale");
  });
  laws.law("runs without gradient", [&] {
    model m{updater, whole};
    m.initialise();
    auto const before = m.everything();
    for (std::uint64_t number = 1; number <= 3; ++number) m.step(number, {1, 4, 6});
    for (std::size_t t = 0; t < m.layout().size(); ++t) {
      bool const had = t == 1 || t == 4 || t == 6;
      laws.expect(m.tensor(t) == (had ? reference.tensor(t) : before[t]),
                  had ? "the update of a tensor depends on its neighbours" : "a run without gradient was changed");
    }
    updater.update(chunk_view{}, {}, {});
    updater.initialise(chunk_view{}, {}, {});
  });
  return laws.take();
}

}  // namespace spillway::inline v0::testing
