// SPDX-License-Identifier: Apache-2.0
/// What a pipeline refuses before anything has changed.
#pragma once

#include <spillway/core/error.hpp>
#include <spillway/optimizer/chunk_updater_concept.hpp>
#include <spillway/pipeline/pipeline_options.hpp>

#include <bit>
#include <cstdint>
#include <string>
#include <utility>

namespace spillway::inline v0::detail {

/// Neither infinite nor NaN. From the bits: the comparisons are folded away under -ffinite-math-only.
[[nodiscard]] inline bool is_finite(double x) noexcept {
  return (std::bit_cast<std::uint64_t>(x) & 0x7ff0000000000000U) != 0x7ff0000000000000U;
}

/// Errors  errc::invalid_option, errc::unsupported.
inline void require_pipeline(parameter_layout const& layout, updater_schema const& schema,
                             pipeline_options const& options) {
  auto const refuse = [](errc code, std::string why) {
    throw error{code, {.where = "offload_pipeline", .detail = std::move(why)}};
  };
  if (options.slots < 2) refuse(errc::invalid_option, "fewer than 2 slots: one is read while another is written");
  if (options.micro_batches == 0) refuse(errc::invalid_option, "micro_batches is 0");
  if (schema.on_device) refuse(errc::unsupported, "an updater that works on the device");
  if (schema.passes != 1) refuse(errc::unsupported, "an update rule of several passes");
  if (schema.groups != 0 && layout.groups() > schema.groups) {
    refuse(errc::invalid_option, "the layout has groups up to " + std::to_string(layout.groups() - 1) +
                                     ", the updater hyper-parameters for " + std::to_string(schema.groups));
  }
}

/// Errors  errc::invalid_option.
inline void require_step(step_options const& options) {
  auto const refuse = [](char const* why) {
    throw error{errc::invalid_option, {.where = "offload_pipeline step", .detail = why}};
  };
  if (!is_finite(options.learning_rate_factor)) refuse("learning_rate_factor is not finite");
  if (!is_finite(options.loss_scale) || !(options.loss_scale > 0)) refuse("loss_scale must be finite and above 0");
  if (!is_finite(options.max_norm) || options.max_norm < 0) refuse("max_norm must be finite and not below 0");
}

}  // namespace spillway::inline v0::detail
