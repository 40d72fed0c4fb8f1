// SPDX-License-Identifier: Apache-2.0
/// From tokens to the loss.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>

#include "activations.hpp"
#include "attention.hpp"
#include "layers.hpp"
#include "matmul.hpp"
#include "model.hpp"

namespace train_gpt {

/// The sequences of a batch: each is context + 1 tokens; the first `context` are read, the last `context` are predicted.
struct token_batch {
  std::span<std::uint8_t const> tokens;
  std::size_t context;

  [[nodiscard]] std::size_t read(std::size_t row) const {
    return tokens[row / context * (context + 1) + row % context];
  }
  [[nodiscard]] std::size_t predicted(std::size_t row) const {
    return tokens[row / context * (context + 1) + row % context + 1];
  }
};

/// Runs the model and leaves in x what the backward pass needs. Returns the mean cross-entropy in nats.
/// Pre      parameters: as parameter_tensors(config) orders them; every token < config.vocabulary.
/// Errors   what the team throws.
/// Threads  one call per activations; the bits do not depend on the team.
template <class T, class Team>
[[nodiscard]] double forward(transformer_config const& config, std::size_t batch, std::span<T const* const> parameters,
                             std::span<std::uint8_t const> tokens, activations<arithmetic_t<T>>& x, Team& team) {
  using real = arithmetic_t<T>;
  std::size_t const width = config.width;
  std::size_t const rows = x.tokens;
  token_batch const sequences{tokens, config.context};

  for_pieces(team, rows, rows_a_piece, [&](std::size_t begin, std::size_t end) {
    for (std::size_t row = begin; row < end; ++row) {
      T const* const token = parameters[token_embedding] + sequences.read(row) * width;
      T const* const position = parameters[position_embedding] + row % config.context * width;
      real* const out = x.stream + row * width;
      for (std::size_t i = 0; i < width; ++i) out[i] = static_cast<real>(token[i]) + static_cast<real>(position[i]);
    }
  });

  for (std::size_t layer = 0; layer < config.layers; ++layer) {
    auto const parameter = [&](block_tensor which) { return parameters[index_of(layer, which)]; };
    // out = in * weight^T + bias, on top of `residual` where there is one
    auto const linear = [&](real* in, std::size_t inputs, block_tensor weight, block_tensor bias, real const* residual,
                            real* out, std::size_t outputs) {
      start_from_bias(team, rows, outputs, parameter(bias), residual, out);
      multiply(team, matrix(in, rows, inputs), matrix(parameter(weight), outputs, inputs).transposed(),
               matrix(out, rows, outputs), into::add);
    };
    auto const block = x.of(layer);
    layer_norm(team, rows, width, block.input, parameter(ln_1_weight), parameter(ln_1_bias), x.normed, x.mean,
               x.inverse_deviation);
    linear(x.normed, width, qkv_weight, qkv_bias, nullptr, block.qkv, 3 * width);
    attention<Team, real>(team, config, batch, block);
    linear(block.attended, width, attention_out_weight, attention_out_bias, block.input, block.middle, width);

    layer_norm(team, rows, width, block.middle, parameter(ln_2_weight), parameter(ln_2_bias), x.normed, x.mean,
               x.inverse_deviation);
    linear(x.normed, width, mlp_in_weight, mlp_in_bias, nullptr, block.hidden, 4 * width);
    gelu(team, rows * 4 * width, block.hidden, x.activated);
    linear(x.activated, 4 * width, mlp_out_weight, mlp_out_bias, block.middle, block.output, width);
  }

  layer_norm(team, rows, width, x.of(config.layers).input, parameters[final_norm_weight(config)],
             parameters[final_norm_bias(config)], x.normed, x.mean, x.inverse_deviation);
  multiply(team, matrix(x.normed, rows, width),
           matrix(parameters[token_embedding], config.vocabulary, width).transposed(),
           matrix(x.logits, rows, config.vocabulary));
  for_pieces(team, rows, rows_a_piece, [&](std::size_t begin, std::size_t end) {
    for (std::size_t row = begin; row < end; ++row) {
      real* const logits = x.logits + row * config.vocabulary;
      real const wanted = logits[sequences.predicted(row)];
      x.losses[row] = softmax(config.vocabulary, logits) - wanted;
    }
  });
  double sum = 0;
  for (std::size_t row = 0; row < rows; ++row) sum += static_cast<double>(x.losses[row]);
  return sum / static_cast<double>(rows);
}

}  // namespace train_gpt
