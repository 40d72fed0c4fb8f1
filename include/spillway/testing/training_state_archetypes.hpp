// SPDX-License-Identifier: Apache-2.0
/// The least that a TrainingState may be, in each of its three forms, and near misses.
#pragma once

#include <spillway/state/training_state_concept.hpp>

#include <cstdint>
#include <string>

namespace spillway::inline v0::testing {

/// Form 1: a member function. Not copyable, not movable, nothing else.
class visited_state {
 public:
  visited_state() = default;
  visited_state(visited_state const&) = delete;
  visited_state& operator=(visited_state const&) = delete;
  template <class V>
  void visit_state(V& visit) {
    visit("step", step_);
  }
  [[nodiscard]] std::uint64_t step() const noexcept { return step_; }
  void step(std::uint64_t value) noexcept { step_ = value; }

 private:
  std::uint64_t step_ = 0;
};

/// Form 2: a function that is found by its arguments.
class hooked_state {
 public:
  [[nodiscard]] std::uint64_t step() const noexcept { return step_; }
  void step(std::uint64_t value) noexcept { step_ = value; }
  template <class V>
  friend void visit_state(V& visit, hooked_state& state) {
    visit("step", state.step_);
  }

 private:
  std::uint64_t step_ = 0;
};

/// Form 3: an aggregate.
struct aggregate_state {
  std::uint64_t step = 0;
  std::string note{};
  friend bool operator==(aggregate_state const&, aggregate_state const&) = default;
};

// Near misses, each one requirement short.
class state_with_nothing {
 public:
  explicit state_with_nothing(int value) : value_(value) {}
  [[nodiscard]] int value() const noexcept { return value_; }

 private:
  int value_;
};
class state_with_wrong_visit {
 public:
  explicit state_with_wrong_visit(int value) : value_(value) {}
  void visit_state() { ++value_; }  // takes no visitor

 private:
  int value_;
};
class state_with_swapped_hook {
 public:
  explicit state_with_swapped_hook(int value) : value_(value) {}
  template <class V>
  friend void visit_state(state_with_swapped_hook& state, V& visit) {  // arguments the wrong way round
    visit("value", state.value_);
  }

 private:
  int value_;
};
struct state_with_reference {  // an aggregate's reference cannot be counted: write visit_state
  std::uint64_t& step;
};
struct state_with_too_many {
  int a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q;
};

}  // namespace spillway::inline v0::testing
