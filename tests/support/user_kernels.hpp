// SPDX-License-Identifier: Apache-2.0
/// Update rules that a user might write, for tests: one by element, one that needs whole tensors.
#pragma once

#include <spillway/core/f32.hpp>
#include <spillway/optimizer/optimizer_kernel_concept.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace test {

/// SGD with momentum, as torch.optim.SGD.
struct momentum_kernel {
  static constexpr std::string_view name = "momentum";
  static constexpr std::array<std::string_view, 2> arrays{"master", "momentum_buffer"};
  static constexpr spillway::granularity unit = spillway::granularity::element;
  static constexpr unsigned passes = 1;

  double lr = 0.1;
  double momentum = 0.9;

  struct constants {
    float lr, momentum;
  };
  [[nodiscard]] constants prepare(spillway::kernel_step step) const noexcept {
    return {(spillway::f64{lr} * step.learning_rate_factor).narrowed(), spillway::f64{momentum}.narrowed()};
  }
  template <class V>
  static void update(constants const& c, V gradient, V (&state)[2]) noexcept {
    auto& [master, buffer] = state;
    buffer = V{c.momentum} * buffer + gradient;
    master = master - V{c.lr} * buffer;
  }
};
static_assert(spillway::ElementKernel<momentum_kernel>);

/// Momentum whose step has the same length for every tensor: it divides by the norm of the tensor's buffer, summed in order.
struct normalised_momentum_kernel {
  static constexpr std::string_view name = "normalised_momentum";
  static constexpr std::array<std::string_view, 2> arrays{"master", "momentum_buffer"};
  static constexpr spillway::granularity unit = spillway::granularity::tensor;
  static constexpr unsigned passes = 1;

  double lr = 0.1;
  double momentum = 0.9;

  using constants = momentum_kernel::constants;
  [[nodiscard]] constants prepare(spillway::kernel_step step) const noexcept {
    return momentum_kernel{lr, momentum}.prepare(step);
  }
  static void update_tensor(constants const& c, std::span<std::uint64_t const>, std::span<float const> gradient,
                            std::array<std::span<float>, 2> state) noexcept {
    using spillway::f32;
    auto const [master, buffer] = state;
    f32 squares{0.0F};
    for (std::size_t i = 0; i < gradient.size(); ++i) {
      f32 const b = f32{c.momentum} * f32{buffer[i]} + f32{gradient[i]};
      b.store(&buffer[i]);
      squares = squares + b * b;
    }
    f32 const rate = f32{c.lr} / (sqrt(squares) + f32{1e-6F});
    for (std::size_t i = 0; i < gradient.size(); ++i) (f32{master[i]} - rate * f32{buffer[i]}).store(&master[i]);
  }
};
static_assert(spillway::TensorKernel<normalised_momentum_kernel>);

}  // namespace test
