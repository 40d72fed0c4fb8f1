// SPDX-License-Identifier: Apache-2.0
#include <spillway/optimizer/adamw_kernel.hpp>

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "support/catch.hpp"
#include "support/float_bits.hpp"
#include "support/training_run.hpp"

using spillway::adamw_kernel;
using spillway::f32;
using test::bits;
using test::recorded;

namespace {
/// One element by the formulas of the paper in torch's form, in double.
struct reference {
  adamw_kernel rule;
  double master = 0, m = 0, v = 0;
  void step(std::uint64_t number, double g, double factor = 1) {
    auto const t = static_cast<double>(number);
    double const lr = rule.lr * factor;
    master -= lr * rule.weight_decay * master;
    m = rule.beta1 * m + (1 - rule.beta1) * g;
    v = rule.beta2 * v + (1 - rule.beta2) * g * g;
    double const denominator = std::sqrt(v) / std::sqrt(1 - std::pow(rule.beta2, t)) + rule.eps;
    master -= lr / (1 - std::pow(rule.beta1, t)) * (m / denominator);
  }
};
struct element {
  adamw_kernel rule;
  f32 state[3] = {};
  void step(std::uint64_t number, float g, double factor = 1) {
    adamw_kernel::update(rule.prepare({.number = number, .learning_rate_factor = factor}), f32{g}, state);
  }
};
}  // namespace

TEST_CASE("adamw_kernel: ten steps with and without decay equal a double-precision reference within 1e-6") {
  for (double const decay : {0.0, 0.1}) {
    for (std::uint64_t e = 0; e < 500; ++e) {
      adamw_kernel const rule{.lr = 0.01, .weight_decay = decay};
      reference wanted{rule};
      element got{rule};
      wanted.master = 8.0 * recorded(1, e);
      got.state[0] = f32{8 * recorded(1, e)};
      for (std::uint64_t step = 1; step <= 10; ++step) {
        wanted.step(step, recorded(100 + step, e), 0.5);
        got.step(step, recorded(100 + step, e), 0.5);
      }
      // Relative to what moved: a master that passes through zero has no relative error of its own.
      double const scale = std::max({std::abs(wanted.master), std::abs(8.0 * recorded(1, e)), 0.05});
      REQUIRE(std::abs(static_cast<double>(got.state[0].value) - wanted.master) < 1e-6 * scale);
      REQUIRE(got.state[2].value == Catch::Approx(wanted.v).epsilon(1e-6));
    }
  }
}

TEST_CASE("adamw_kernel: decay uses the weight before the update, and is not part of the gradient") {
  adamw_kernel const rule{.lr = 0.1, .weight_decay = 0.5};
  reference wanted{rule, 1};
  element got{rule, {f32{1.0F}}};
  double coupled = 1;  // decay as part of the gradient: what other rules do
  double m = 0;
  double v = 0;
  for (std::uint64_t step = 1; step <= 5; ++step) {
    wanted.step(step, 1);
    got.step(step, 1);
    double const g = 1 + 0.5 * coupled;
    m = 0.9 * m + 0.1 * g;
    v = 0.999 * v + 0.001 * g * g;
    auto const t = static_cast<double>(step);
    coupled -= 0.1 * (m / (1 - std::pow(0.9, t))) / (std::sqrt(v / (1 - std::pow(0.999, t))) + 1e-8);
    auto const narrowed = static_cast<float>(wanted.master);
    REQUIRE(std::abs(got.state[0].value - narrowed) <= 2 * (std::nextafter(narrowed, 2.0F) - narrowed));
  }
  CHECK(std::abs(coupled - wanted.master) > 0.05);
}

TEST_CASE("adamw_kernel: one known step") {
  // lr 0.1, master 1, gradient 0.5: m = 0.05, v = 0.00025; corrected both give 0.5, so the step is lr.
  element got{{.lr = 0.1, .weight_decay = 0}, {f32{1.0F}}};
  got.step(1, 0.5F);
  CHECK(got.state[0].value == Catch::Approx(0.9).epsilon(1e-7));
  CHECK(got.state[1].value == Catch::Approx(0.05).epsilon(1e-7));
  CHECK(got.state[2].value == Catch::Approx(0.00025).epsilon(1e-7));
}

TEST_CASE("adamw_kernel: eps is added to the corrected root, as torch does") {
  element got{{.lr = 1, .beta2 = 0.999, .eps = 1, .weight_decay = 0}, {}};
  got.step(1, 1.0F);
  CHECK(got.state[0].value ==
        Catch::Approx(-0.5).epsilon(1e-6));  // 1 / (sqrt(1) + 1); inside the correction it were 0.03
}

TEST_CASE("adamw_kernel: decay that bf16 would lose works in the master") {
  element got{{.lr = 1e-3, .weight_decay = 1e-2}, {f32{1.0F}}};
  for (std::uint64_t step = 1; step <= 1000; ++step) got.step(step, 0);
  CHECK(got.state[0].value == Catch::Approx(std::pow(1 - 1e-5, 1000)).epsilon(1e-6));
}

TEST_CASE("adamw_kernel: no gradient, no decay: the parameter does not change by a bit") {
  for (float const start : {1.0F, -3.25e-20F, 1e-42F, 0.0F}) {
    element got{{.weight_decay = 0}, {f32{start}}};
    for (std::uint64_t step = 1; step <= 500; ++step) got.step(step, 0);
    CHECK(bits(got.state[0].value) == bits(start));
    CHECK(bits(got.state[1].value) == 0);
    CHECK(bits(got.state[2].value) == 0);
  }
}

TEST_CASE("adamw_kernel: beta2 0.999 and 0.9999 are different rules") {
  element a{{.beta2 = 0.999}, {}};
  element b{{.beta2 = 0.9999}, {}};
  for (std::uint64_t step = 1; step <= 20; ++step) {
    a.step(step, recorded(step, 0));
    b.step(step, recorded(step, 0));
  }
  CHECK(a.state[2].value > 5 * b.state[2].value);
  CHECK(a.state[0].value != b.state[0].value);
}

TEST_CASE("adamw_kernel: the constants are a function of hyper-parameters and step alone, for any jump of the step") {
  adamw_kernel const rule{.lr = 3e-4};
  auto const constants = [&](adamw_kernel const& k, std::uint64_t number) {
    auto const c = k.prepare({.number = number, .learning_rate_factor = 0.5});
    return std::vector<std::uint32_t>{bits(c.decay), bits(c.beta1),     bits(c.rest1),           bits(c.beta2),
                                      bits(c.rest2), bits(c.step_size), bits(c.root_correction), bits(c.eps)};
  };
  auto const at_101 = constants(rule, 101);
  for (std::uint64_t const other : {1ULL, 100ULL, 5000ULL, 3ULL, (1ULL << 24U) + 1}) {
    static_cast<void>(constants(rule, other));
    static_cast<void>(constants({.lr = 1, .beta1 = 0.5}, other));
    CHECK(constants(rule, 101) == at_101);
  }
  CHECK(constants(rule, 102) != at_101);
  auto const late = rule.prepare({.number = (std::uint64_t{1} << 24U) + 1});
  CHECK(late.step_size == static_cast<float>(3e-4));
  CHECK(late.root_correction == 1.0F);
}

TEST_CASE("adamw_kernel: two rules alive at once do not know of each other") {
  adamw_kernel const one{.lr = 0.1, .beta1 = 0.8, .eps = 1e-6, .weight_decay = 0.3};
  adamw_kernel const two{.lr = 0.01, .beta2 = 0.95, .weight_decay = 0};
  element alone_one{one, {f32{1.0F}}};
  element alone_two{two, {f32{1.0F}}};
  element turn_one = alone_one;
  element turn_two = alone_two;
  for (std::uint64_t step = 1; step <= 10; ++step) alone_one.step(step, recorded(step, 1));
  for (std::uint64_t step = 1; step <= 10; ++step) alone_two.step(step, recorded(step, 2));
  for (std::uint64_t step = 1; step <= 10; ++step) {
    turn_one.step(step, recorded(step, 1));
    turn_two.step(step, recorded(step, 2));
  }
  for (int a = 0; a < 3; ++a) {
    CHECK(bits(alone_one.state[a].value) == bits(turn_one.state[a].value));
    CHECK(bits(alone_two.state[a].value) == bits(turn_two.state[a].value));
  }
}
