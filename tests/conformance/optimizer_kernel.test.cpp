// SPDX-License-Identifier: Apache-2.0
#include <spillway/optimizer/adamw_kernel.hpp>
#include <spillway/testing/optimizer_kernel_archetypes.hpp>
#include <spillway/testing/optimizer_kernel_conformance.hpp>

#include <algorithm>
#include <string>
#include <vector>

#include "support/catch.hpp"
#include "support/user_kernels.hpp"

using spillway::adamw_kernel;
using spillway::f32;
using spillway::kernel_step;
using spillway::testing::check_optimizer_kernel;

namespace {
std::vector<std::string> const none;
}

TEST_CASE("optimizer kernel conformance: adamw_kernel") {
  CHECK(check_optimizer_kernel<adamw_kernel>() == none);
  CHECK(check_optimizer_kernel(adamw_kernel{.lr = 0.3, .beta1 = 0, .beta2 = 0.5, .eps = 1e-3, .weight_decay = 0}) ==
        none);
}

TEST_CASE("optimizer kernel conformance: a user's kernels, by element and by tensor") {
  CHECK(check_optimizer_kernel<test::momentum_kernel>() == none);
  CHECK(check_optimizer_kernel<test::normalised_momentum_kernel>() == none);
}

namespace {
/// Kernels that break one law each: the suite must see it.
struct kernel_whose_master_is_second : test::momentum_kernel {
  static constexpr std::array<std::string_view, 2> arrays{"momentum_buffer", "master"};
};
struct kernel_that_remembers : test::momentum_kernel {
  template <class V>
  static void update(constants const& c, V gradient, V (&state)[2]) noexcept {
    static float calls = 0;
    calls += 1;
    momentum_kernel::update(constants{c.lr * calls, c.momentum}, gradient, state);
  }
};
struct kernel_that_adds_in_another_order_when_wide : test::momentum_kernel {
  template <class V>
  static void update(constants const& c, V gradient, V (&state)[2]) noexcept {
    momentum_kernel::update(c, gradient, state);
    if constexpr (V::width > 1) {
      state[0] = (state[0] + V{1.0F}) - V{1.0F};
    }
  }
};
struct kernel_that_divides_by_its_buffer : test::momentum_kernel {
  template <class V>
  static void update(constants const& c, V gradient, V (&state)[2]) noexcept {
    state[1] = V{c.momentum} * state[1] + gradient;
    state[0] = state[0] - V{c.lr} * (state[1] / state[1]);
  }
};
struct kernel_with_its_own_schedule : test::momentum_kernel {
  [[nodiscard]] constants prepare(kernel_step) const noexcept { return momentum_kernel::prepare({}); }
};
struct kernel_that_counts_in_32_bits : adamw_kernel {
  [[nodiscard]] constants prepare(kernel_step step) const noexcept {
    step.number = static_cast<std::uint32_t>(step.number) - 1;  // 2^32 + 1 becomes 0: a division by zero
    return adamw_kernel::prepare(step);
  }
};
struct tensor_kernel_that_writes_behind : test::normalised_momentum_kernel {
  static void update_tensor(constants const& c, std::span<std::uint64_t const> shape, std::span<float const> gradient,
                            std::array<std::span<float>, 2> state) noexcept {
    normalised_momentum_kernel::update_tensor(c, shape, gradient, state);
    if (gradient.size() < 100) state[1].data()[gradient.size()] = 0;
  }
};

template <class Broken>
[[nodiscard]] bool found_in(std::string const& law) {
  auto const broken = check_optimizer_kernel<Broken>();
  return std::any_of(broken.begin(), broken.end(), [&](auto const& text) { return text.rfind(law, 0) == 0; });
}
}  // namespace

TEST_CASE("optimizer kernel conformance: the suite finds broken laws") {
  CHECK(found_in<kernel_whose_master_is_second>("names: the first array"));
  CHECK(found_in<kernel_that_remembers>("purity"));
  CHECK(found_in<kernel_that_adds_in_another_order_when_wide>("value types"));
  CHECK(found_in<kernel_that_divides_by_its_buffer>("zeros"));
  CHECK(found_in<kernel_with_its_own_schedule>("learning rate"));
  CHECK(found_in<kernel_that_counts_in_32_bits>("late steps"));
  CHECK(found_in<tensor_kernel_that_writes_behind>("bounds"));
}
