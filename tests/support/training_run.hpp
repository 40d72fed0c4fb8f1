// SPDX-License-Identifier: Apache-2.0
/// A model that is trained on recorded gradients: numbers made by integer arithmetic, so that every build has the same ones.
#pragma once

#include <spillway/core/digest.hpp>
#include <spillway/device/host_device.hpp>
#include <spillway/durable/spilled_state_concept.hpp>
#include <spillway/observe/step_report.hpp>
#include <spillway/pipeline/pipeline_options.hpp>

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace test {

/// Odd ends, both types, two groups, a scalar, an empty tensor; 674,207 elements in 661 blocks.
inline spillway::parameter_layout training_layout() {
  using spillway::dtype;
  return spillway::parameter_layout{{{"embed", {300, 700}, dtype::bfloat16, 0},
                                     {"norm", {513}, dtype::float32, 1},
                                     {"nothing", {0, 3}, dtype::float32, 1},
                                     {"w", {64, 4096}, dtype::bfloat16, 0},
                                     {"scale", {}, dtype::float32, 1},
                                     {"w2", {3, 67183}, dtype::bfloat16, 0}}};
}

/// fp32 bits of some size from 2^-12 to 2^-3 that narrow to bf16 without loss.
inline float recorded(std::uint64_t seed, std::uint64_t element) noexcept {
  std::uint64_t x = (seed * 0x9e3779b97f4a7c15U + element + 1) * 0xbf58476d1ce4e5b9U;
  x = (x ^ (x >> 29U)) * 0x94d049bb133111ebU;
  auto const random = static_cast<std::uint32_t>(x >> 32U);
  return std::bit_cast<float>((random & 0x80000000U) | ((115U + (random >> 8U) % 10U) << 23U) |
                              (random & 0x7fU) << 16U);
}

/// Gradients in device memory for one pipeline, and where its parameters live.
template <class Pipeline, spillway::Device D = spillway::host_device>
class trainer {
 public:
  trainer(D& device, Pipeline& pipeline) : device_(&device), pipeline_(&pipeline), stream_(device.make_stream()) {
    auto const& layout = pipeline.layout();
    for (std::size_t t = 0; t < layout.size(); ++t) {
      spillway::bytes const size = layout.elements(t) * spillway::size_of(layout[t].type);
      parameters_.push_back(device.allocate(size));
      gradients_.push_back(device.allocate(size));
      host_.emplace_back(size.count);
      pipeline.bind(t, parameters_.back().data);
    }
  }
  trainer(trainer const&) = delete;
  trainer& operator=(trainer const&) = delete;
  ~trainer() {
    for (auto const& block : parameters_) device_->deallocate(block);
    for (auto const& block : gradients_) device_->deallocate(block);
  }

  void initialise() {
    pipeline_->initialise([](std::size_t tensor, std::uint64_t first, std::span<float> out) {
      for (std::size_t i = 0; i < out.size(); ++i) out[i] = 8 * recorded(1000 + tensor, first + i);
    });
  }
  /// Hand over value(element) for every element of a tensor.
  template <class Value>
  typename D::event give(std::size_t tensor, Value const& value) {
    auto const& spec = pipeline_->layout()[tensor];
    auto& memory = host_[tensor];
    for (std::uint64_t e = 0; e < pipeline_->layout().elements(tensor); ++e) {
      float const v = value(e);
      if (spec.type == spillway::dtype::bfloat16) {
        spillway::bf16 const half = spillway::narrow(v);
        std::memcpy(&memory[e * 2], &half, 2);
      } else {
        std::memcpy(&memory[e * 4], &v, 4);
      }
    }
    device_->copy_to_device(stream_, gradients_[tensor].data, memory);
    auto const ready = device_->record(stream_);
    auto const taken = pipeline_->accumulate(tensor, gradients_[tensor].data, ready);
    device_->wait(stream_, taken);  // the next micro-batch may overwrite it only then
    ready.wait();
    return taken;
  }
  /// The recorded gradients of a step; the tensor "norm" has one on even steps only. `micro` varies them, `factor` scales them.
  void give_all(std::uint64_t step, std::uint64_t micro = 0, float factor = 1) {
    for (std::size_t t = 0; t < pipeline_->layout().size(); ++t) {
      if (pipeline_->layout()[t].name == "norm" && step % 2 != 0) continue;
      give(t, [&](std::uint64_t e) { return factor * recorded(step * 100 + micro * 10 + t, e); });
    }
  }
  spillway::step_report step(spillway::step_options const& options = {.learning_rate_factor = 0.75, .max_norm = 2}) {
    give_all(pipeline_->updates() + 1);
    return pipeline_->step(options);
  }
  [[nodiscard]] spillway::device_block parameter(std::size_t tensor) const { return parameters_[tensor]; }

 private:
  D* device_;
  Pipeline* pipeline_;
  std::vector<spillway::device_block> parameters_;
  std::vector<spillway::device_block> gradients_;
  std::vector<std::vector<std::byte>> host_;
  typename D::stream stream_;
};

/// The true elements of a spilled state by tensor and array, whatever chunks and homes it is in.
struct snapshot {
  std::vector<std::vector<std::vector<std::byte>>> arrays;
  std::vector<std::vector<std::byte>> parameters;
  std::vector<std::uint64_t> counters;
  friend bool operator==(snapshot const&, snapshot const&) = default;

  [[nodiscard]] float value(std::size_t tensor, std::size_t array, std::size_t element) const {
    float out = 0;
    std::memcpy(&out, &arrays[tensor][array][element * sizeof out], sizeof out);
    return out;
  }
  [[nodiscard]] spillway::bf16 narrow_parameter(std::size_t tensor, std::size_t element) const {
    spillway::bf16 out;
    std::memcpy(&out, &parameters[tensor][element * sizeof out], sizeof out);
    return out;
  }
  [[nodiscard]] std::string digest() const {
    spillway::hash128 h{};
    for (auto const& tensor : arrays) {
      for (auto const& array : tensor) h = spillway::hash_bytes(array, h);
    }
    for (auto const& parameter : parameters) h = spillway::hash_bytes(parameter, h);
    return to_string(spillway::hash_bytes(std::as_bytes(std::span{counters}), h));
  }
};

template <spillway::SpilledState S>
snapshot snapshot_of(S& state) {
  snapshot out;
  auto const& layout = state.layout();
  out.arrays.assign(layout.size(), std::vector<std::vector<std::byte>>(state.arrays().size()));
  out.parameters.resize(layout.size());
  for (std::size_t c = 0; c < state.chunks().size(); ++c) {
    state.export_chunk(c, [&](std::size_t a, std::span<std::byte const> data) {
      auto const& array = state.arrays()[a];
      for (spillway::run const& r : state.chunks()[c].runs) {
        auto const first = data.begin() + static_cast<std::ptrdiff_t>(r.offset / 1024 * array.bytes_per_block);
        auto& to = out.arrays[r.tensor][a];
        to.insert(to.end(), first,
                  first + static_cast<std::ptrdiff_t>((r.count * spillway::size_of(array.type)).count));
      }
    });
  }
  for (std::size_t t = 0; t < layout.size(); ++t) {
    state.export_parameter(t, [&](std::span<std::byte const> piece) {
      out.parameters[t].insert(out.parameters[t].end(), piece.begin(), piece.end());
    });
  }
  struct counters {
    std::vector<std::uint64_t>& to;
    void operator()(char const*, std::uint64_t& n) const { to.push_back(n); }
    void operator()(char const*, std::vector<std::uint64_t>& n) const { to.insert(to.end(), n.begin(), n.end()); }
  };
  state.visit_counters(counters{out.counters});
  return out;
}

}  // namespace test
