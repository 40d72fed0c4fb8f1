// SPDX-License-Identifier: Apache-2.0
/// The training state that checkpoint tests save, and what they do to its files.
#pragma once

#include <spillway/core/counter_rng.hpp>
#include <spillway/state/leaf.hpp>
#include <spillway/state/sampler_position.hpp>

#include <cstddef>
#include <cstdint>
#include <fstream>
#include <iterator>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "support/memory_spilled_state.hpp"

namespace test {

enum class phase : std::uint8_t { warm_up, main };

struct run_state {
  std::uint64_t step = 0;
  double loss_scale = 65536;
  bool done = false;
  phase where = phase::warm_up;
  spillway::counter_rng rng{};
  spillway::sampler_position sampler{};
  std::string note{};
  std::vector<std::byte> user{};
  std::vector<float> ema{};
  std::vector<float> table = std::vector<float>(6);
  std::map<int, int> cache{};
  memory_spilled_state* spill = nullptr;

  template <class V>
  void visit_state(V& visit) {
    visit("step", step);
    visit("loss_scale", loss_scale);
    visit("done", done);
    visit("where", where);
    visit("rng", rng);
    visit("sampler", sampler);
    visit("note", note);
    visit("user", user);
    visit("ema", ema);
    visit("table", spillway::tensor_leaf{std::span{table}, {2, 3}});
    visit("cache", spillway::transient(cache));
    visit("pipeline", *spill);
  }
};

/// State as after `step` steps: every member depends on it.
inline void train_to(run_state& state, std::uint64_t step) {
  state.step = step;
  state.loss_scale = 0.1 * static_cast<double>(step);
  state.done = step % 2 == 1;
  state.where = step > 5 ? phase::main : phase::warm_up;
  state.rng = {.seed = 7, .stream = 1, .counter = step * 13};
  state.sampler = {.seed = 9, .samples_drawn = step * 4};
  state.note = "after " + std::to_string(step);
  state.user.assign(step, std::byte{0x5a});
  state.ema.assign(3 + step * 400, static_cast<float>(step));  // some of them too long to lie in the manifest
  for (std::size_t i = 0; i < state.table.size(); ++i) state.table[i] = static_cast<float>(step * 10 + i);
  state.spill->fill(static_cast<unsigned>(step));
}

inline bool same(run_state const& a, run_state const& b) {
  return a.step == b.step && a.loss_scale == b.loss_scale && a.done == b.done && a.where == b.where && a.rng == b.rng &&
         a.sampler == b.sampler && a.note == b.note && a.user == b.user && a.ema == b.ema && a.table == b.table &&
         a.spill->steps == b.spill->steps && a.spill->parameters() == b.spill->parameters();
}
/// Same, chunk by chunk too: for equal chunk plans.
inline bool identical(run_state const& a, run_state const& b) {
  return same(a, b) && a.spill->contents() == b.spill->contents();
}

inline std::string read_file(std::string const& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}
inline void write_file(std::string const& path, std::string const& text) {
  std::ofstream out(path, std::ios::binary | std::ios::trunc);
  out.write(text.data(), static_cast<std::streamsize>(text.size()));
}

inline void write_byte(std::string const& path, std::size_t at, char value) {
  std::fstream out(path, std::ios::binary | std::ios::in | std::ios::out);
  out.seekp(static_cast<std::streamoff>(at));
  out.put(value);
}

}  // namespace test
