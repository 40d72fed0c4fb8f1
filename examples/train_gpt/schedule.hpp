// SPDX-License-Identifier: Apache-2.0
/// The learning rate of each step: linear warm-up, then a cosine down to a floor.
#pragma once

#include <spillway/core/error.hpp>
#include <spillway/core/f32.hpp>

#include <cmath>
#include <cstdint>
#include <string>
#include <utility>

namespace train_gpt {

/// A pure function of the step, in spillway::f32 and without libm, because the rate enters the update: so it has the same bits
/// on every machine and under every compiler flag.
struct cosine_schedule {
  float peak = 1e-3F;   ///< reached at the end of the warm-up
  float floor = 1e-4F;  ///< from the last step on
  std::uint64_t warmup_steps = 0;
  std::uint64_t total_steps = 1;  ///< warm-up included

  /// Errors   spillway::error invalid_option, naming the value.
  /// Threads  safe.
  void validate() const {
    auto const refuse = [](std::string why) {
      throw spillway::error{spillway::errc::invalid_option,
                            {.where = "learning rate schedule", .detail = std::move(why)}};
    };
    if (!std::isfinite(peak) || peak <= 0) refuse("the peak rate must be a positive number");
    if (!(floor >= 0 && floor <= peak)) refuse("the final rate must lie between 0 and the peak");
    if (warmup_steps > total_steps) {
      refuse("a warm-up of " + std::to_string(warmup_steps) + " steps is longer than the run of " +
             std::to_string(total_steps));
    }
  }

  /// The rate of a step.
  /// Units    step: counts from 1.
  /// Errors   none; noexcept.
  /// Threads  safe.
  [[nodiscard]] float at(std::uint64_t step) const noexcept {
    using spillway::f32;
    auto const real = [](std::uint64_t n) { return f32{static_cast<float>(n)}; };
    if (step < warmup_steps) return (f32{peak} * (real(step) / real(warmup_steps))).value;
    if (step == warmup_steps) return peak;
    if (step >= total_steps) return floor;
    f32 const progress = real(step - warmup_steps) / real(total_steps - warmup_steps);
    f32 const share = f32{0.5F} - f32{0.5F} * sine_of_pi(progress - f32{0.5F});
    return (f32{floor} + (f32{peak} - f32{floor}) * share).value;
  }

 private:
  // sin(pi x) for |x| <= 1/2 by its series; the first term left out is below 1e-7.
  [[nodiscard]] static spillway::f32 sine_of_pi(spillway::f32 x) noexcept {
    using spillway::f32;
    f32 const z = x * x;
    f32 sum{-7.3704309e-3F};
    for (float const coefficient : {8.2145887e-2F, -5.9926453e-1F, 2.5501640F, -5.1677128F, 3.1415927F}) {
      sum = sum * z + f32{coefficient};
    }
    return sum * x;
  }
};

}  // namespace train_gpt
