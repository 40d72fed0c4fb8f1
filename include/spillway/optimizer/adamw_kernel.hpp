// SPDX-License-Identifier: Apache-2.0
/// AdamW.
#pragma once

#include <spillway/optimizer/optimizer_kernel_concept.hpp>

#include <array>
#include <string_view>

namespace spillway::inline v0 {

/// Adam with decoupled weight decay, in torch's form of eps and bias correction (eps is added to the corrected root).
/// Units   lr: per step. weight_decay: per step, times lr. eps: of the gradient.
/// Cost    28 bytes moved per element with bf16 gradient and parameter (14 read, 14 written).
/// Source  Loshchilov & Hutter, arXiv:1711.05101, Algorithm 2; torch.optim.AdamW.
struct adamw_kernel {
  static constexpr std::string_view name = "adamw";
  static constexpr std::array<std::string_view, 3> arrays{"master", "exp_avg", "exp_avg_sq"};
  static constexpr granularity unit = granularity::element;
  static constexpr unsigned passes = 1;

  double lr = 1e-3;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double eps = 1e-8;
  double weight_decay = 1e-2;

  struct constants {
    float decay, beta1, rest1, beta2, rest2, step_size, root_correction, eps;
  };

  [[nodiscard]] constants prepare(kernel_step step) const noexcept {
    f64 const rate = f64{lr} * step.learning_rate_factor;
    f64 const correction1 = f64{1.0} - power(beta1, step.number);
    f64 const correction2 = f64{1.0} - power(beta2, step.number);
    return {.decay = (rate * weight_decay).narrowed(),
            .beta1 = f64{beta1}.narrowed(),
            .rest1 = (f64{1.0} - beta1).narrowed(),
            .beta2 = f64{beta2}.narrowed(),
            .rest2 = (f64{1.0} - beta2).narrowed(),
            .step_size = (rate / correction1).narrowed(),
            .root_correction = sqrt(correction2).narrowed(),
            .eps = f64{eps}.narrowed()};
  }

  template <class V>
  SPILLWAY_HOST_DEVICE static void update(constants const& c, V gradient, V (&state)[3]) noexcept {
    auto& [master, exp_avg, exp_avg_sq] = state;
    exp_avg = V{c.beta1} * exp_avg + V{c.rest1} * gradient;
    exp_avg_sq = V{c.beta2} * exp_avg_sq + V{c.rest2} * (gradient * gradient);
    V const denominator = sqrt(exp_avg_sq) / V{c.root_correction} + V{c.eps};
    // Both parts of the step first, and one rounding into the master: fp32 holds 1 - lr * weight_decay only to 3e-8, which a
    // thousand steps would multiply.
    master = master - (V{c.decay} * master + V{c.step_size} * (exp_avg / denominator));
  }
};
static_assert(ElementKernel<adamw_kernel>);

}  // namespace spillway::inline v0
