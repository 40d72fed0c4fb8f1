// SPDX-License-Identifier: Apache-2.0
/// A decoder-only transformer: embeddings, blocks of causal attention and GELU MLP behind layer norms, a tied head
/// (the architecture of GPT-2). The parameters belong to the caller; so does all memory that a step needs.
#pragma once

#include <spillway/core/bf16.hpp>
#include <spillway/core/bytes.hpp>
#include <spillway/core/config.hpp>

#include <cstddef>
#include <cstdint>
#include <span>

#include "activations.hpp"
#include "model.hpp"
#include "transformer_backward.hpp"
#include "transformer_forward.hpp"

namespace train_gpt {

/// Runs steps on batches of sequences. T is the type of parameters and gradients: bf16, computed in fp32, or float or double
/// (for checks).
template <class T = spillway::bf16>
class transformer {
 public:
  using real = arithmetic_t<T>;

  /// Errors   spillway::error invalid_option when the sizes make no model.
  transformer(transformer_config const& config, std::size_t batch) : config_(config), batch_(batch) {
    validate(config, batch);
  }

  [[nodiscard]] transformer_config const& config() const { return config_; }
  [[nodiscard]] std::size_t batch() const { return batch_; }

  /// What one step needs besides parameters and gradients: exactly this much of the workspace is written.
  /// Errors   none.
  /// Threads  safe.
  [[nodiscard]] spillway::bytes workspace_bytes() const {
    arena counting;
    activations<real> const unused(config_, batch_, counting);
    return counting.used();
  }

  /// Forward and backward. Writes loss_scale times the gradient of every tensor and returns the mean loss in nats, unscaled.
  /// Shapes   parameters, gradients: a buffer per tensor of parameter_tensors(config()), in its order and of its size.
  ///          tokens: [batch, context + 1].
  /// Pre      tokens < vocabulary; workspace of at least workspace_bytes(), aligned to 64; nothing overlaps.
  /// Errors   what the team throws.
  /// Threads  const, safe on disjoint buffers; the same bits with any team.
  /// Cost     about 6 floating-point operations per parameter and token; no allocation.
  template <class Team>
  [[nodiscard]] double step(std::span<T const* const> parameters, std::span<T* const> gradients,
                            std::span<std::uint8_t const> tokens, float loss_scale, std::span<std::byte> workspace,
                            Team& team) const {
    SPILLWAY_EXPECTS(gradients.size() == parameters.size());
    activations<real> x = activations_in(parameters, tokens, workspace);
    double const loss = forward(config_, batch_, parameters, tokens, x, team);
    backward(config_, batch_, parameters, gradients, tokens, loss_scale, x, team);
    return loss;
  }

  /// Forward only: the mean loss in nats. Everything else as for step.
  template <class Team>
  [[nodiscard]] double evaluate(std::span<T const* const> parameters, std::span<std::uint8_t const> tokens,
                                std::span<std::byte> workspace, Team& team) const {
    activations<real> x = activations_in(parameters, tokens, workspace);
    return forward(config_, batch_, parameters, tokens, x, team);
  }

 private:
  [[nodiscard]] activations<real> activations_in(std::span<T const* const> parameters,
                                                 std::span<std::uint8_t const> tokens,
                                                 std::span<std::byte> workspace) const {
    SPILLWAY_EXPECTS(parameters.size() == final_norm_bias(config_) + 1);
    SPILLWAY_EXPECTS(tokens.size() == batch_ * (config_.context + 1));
    SPILLWAY_EXPECTS(workspace.size() >= workspace_bytes().count);
    SPILLWAY_EXPECTS(reinterpret_cast<std::uintptr_t>(workspace.data()) % 64 == 0);
    arena memory(workspace.data());
    return activations<real>(config_, batch_, memory);
  }

  transformer_config config_;
  std::size_t batch_;
};

}  // namespace train_gpt
