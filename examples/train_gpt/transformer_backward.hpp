// SPDX-License-Identifier: Apache-2.0
/// From the loss back to a gradient for every parameter tensor.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "transformer_forward.hpp"

namespace train_gpt {

namespace detail {
// The two gradients of out = in * weight^T + bias: computed in scratch, stored in the type of the parameters.
template <class T, class Team>
struct linear_backward {
  using real = arithmetic_t<T>;
  Team& team;
  std::size_t rows;
  real* scratch;

  void parameters(real* in, std::size_t inputs, real* d_out, std::size_t outputs, T* d_weight, T* d_bias) const {
    multiply(team, matrix(d_out, rows, outputs).transposed(), matrix(in, rows, inputs),
             matrix(scratch, outputs, inputs));
    store_gradient(team, outputs * inputs, scratch, d_weight);
    bias_backward(team, rows, outputs, d_out, scratch);
    store_gradient(team, outputs, scratch, d_bias);
  }
  void input(real* d_out, std::size_t outputs, T const* weight, std::size_t inputs, real* d_in) const {
    multiply(team, matrix(d_out, rows, outputs), matrix(weight, outputs, inputs), matrix(d_in, rows, inputs));
  }
};

// Through a layer norm: its two parameters, and its input's share of the residual stream's gradient.
template <class T, class Team, class Real>
void norm_backward(Team& team, activations<Real>& x, Real const* in, T const* gain, T* d_gain, T* d_bias) {
  layer_norm_gain_backward(team, x.tokens, x.width, x.d_branch, in, x.mean, x.inverse_deviation, x.d_parameter);
  store_gradient(team, x.width, x.d_parameter, d_gain);
  bias_backward(team, x.tokens, x.width, x.d_branch, x.d_parameter);
  store_gradient(team, x.width, x.d_parameter, d_bias);
  layer_norm_backward(team, x.tokens, x.width, x.d_branch, in, gain, x.mean, x.inverse_deviation, x.d_stream);
}

// The embeddings: every token adds its row to the embedding of what it read, every sequence to the positions.
template <class T, class Team, class Real>
void embedding_backward(Team& team, transformer_config const& config, token_batch const& sequences,
                        activations<Real>& x, T* d_token, T* d_position) {
  std::size_t const width = config.width;
  // Split by columns, so that each element has one task and one order, whichever tokens repeat.
  for_pieces(team, width, columns_a_piece, [&](std::size_t begin, std::size_t end) {
    for (std::size_t row = 0; row < config.context; ++row) {
      for (std::size_t i = begin; i < end; ++i) x.d_parameter[row * width + i] = 0;
    }
    for (std::size_t row = 0; row < x.tokens; ++row) {
      Real const* const from = x.d_stream + row * width;
      Real* const token = x.d_embedding + sequences.read(row) * width;
      Real* const position = x.d_parameter + row % config.context * width;
      for (std::size_t i = begin; i < end; ++i) token[i] += from[i];
      for (std::size_t i = begin; i < end; ++i) position[i] += from[i];
    }
  });
  store_gradient(team, config.vocabulary * width, x.d_embedding, d_token);
  store_gradient(team, config.context * width, x.d_parameter, d_position);
}
}  // namespace detail

/// Writes loss_scale times the gradient of the mean loss, for every tensor, after `forward` on the same arguments.
/// Pre      gradients: one buffer per tensor, of its size; overwritten.
/// Errors   what the team throws.
/// Threads  one call per activations; the bits do not depend on the team.
template <class T, class Team>
void backward(transformer_config const& config, std::size_t batch, std::span<T const* const> parameters,
              std::span<T* const> gradients, std::span<std::uint8_t const> tokens, float loss_scale,
              activations<arithmetic_t<T>>& x, Team& team) {
  using real = arithmetic_t<T>;
  std::size_t const width = config.width;
  std::size_t const rows = x.tokens;
  token_batch const sequences{tokens, config.context};
  detail::linear_backward<T, Team> const linear{team, rows, x.d_parameter};

  // The head. The logits hold probabilities by now, and their gradient is: probability - (1 for the token that came).
  real const scale = static_cast<real>(loss_scale) / static_cast<real>(rows);
  for_pieces(team, rows, rows_a_piece, [&](std::size_t begin, std::size_t end) {
    for (std::size_t row = begin; row < end; ++row) {
      real* const logits = x.logits + row * config.vocabulary;
      logits[sequences.predicted(row)] -= real{1};
      for (std::size_t i = 0; i < config.vocabulary; ++i) logits[i] *= scale;
    }
  });
  multiply(team, matrix(x.logits, rows, config.vocabulary).transposed(), matrix(x.normed, rows, width),
           matrix(x.d_embedding, config.vocabulary, width));
  linear.input(x.logits, config.vocabulary, parameters[token_embedding], width, x.d_branch);
  for_pieces(team, rows * width, 16384, [&](std::size_t begin, std::size_t end) {
    for (std::size_t i = begin; i < end; ++i) x.d_stream[i] = 0;
  });
  detail::norm_backward(team, x, x.of(config.layers).input, parameters[final_norm_weight(config)],
                        gradients[final_norm_weight(config)], gradients[final_norm_bias(config)]);

  for (std::size_t layer = config.layers; layer-- > 0;) {
    auto const parameter = [&](block_tensor which) { return parameters[index_of(layer, which)]; };
    auto const gradient = [&](block_tensor which) { return gradients[index_of(layer, which)]; };
    auto const block = x.of(layer);

    // MLP: what the forward pass did not keep is computed again.
    layer_norm(team, rows, width, block.middle, parameter(ln_2_weight), parameter(ln_2_bias), x.normed, x.mean,
               x.inverse_deviation);
    gelu(team, rows * 4 * width, block.hidden, x.activated);
    linear.parameters(x.activated, 4 * width, x.d_stream, width, gradient(mlp_out_weight), gradient(mlp_out_bias));
    linear.input(x.d_stream, width, parameter(mlp_out_weight), 4 * width, x.d_hidden);
    gelu_backward(team, rows * 4 * width, block.hidden, x.d_hidden);
    linear.parameters(x.normed, width, x.d_hidden, 4 * width, gradient(mlp_in_weight), gradient(mlp_in_bias));
    linear.input(x.d_hidden, 4 * width, parameter(mlp_in_weight), width, x.d_branch);
    detail::norm_backward(team, x, block.middle, parameter(ln_2_weight), gradient(ln_2_weight), gradient(ln_2_bias));

    // Attention.
    layer_norm(team, rows, width, block.input, parameter(ln_1_weight), parameter(ln_1_bias), x.normed, x.mean,
               x.inverse_deviation);
    linear.parameters(block.attended, width, x.d_stream, width, gradient(attention_out_weight),
                      gradient(attention_out_bias));
    linear.input(x.d_stream, width, parameter(attention_out_weight), width, x.d_branch);
    attention_backward(team, config, batch, block, x.d_branch, x.d_scores, x.d_hidden);
    linear.parameters(x.normed, width, x.d_hidden, 3 * width, gradient(qkv_weight), gradient(qkv_bias));
    linear.input(x.d_hidden, 3 * width, parameter(qkv_weight), width, x.d_branch);
    detail::norm_backward(team, x, block.input, parameter(ln_1_weight), gradient(ln_1_weight), gradient(ln_1_bias));
  }
  detail::embedding_backward(team, config, sequences, x, gradients[token_embedding], gradients[position_embedding]);
}

}  // namespace train_gpt
