// SPDX-License-Identifier: Apache-2.0
/// Causal attention with several heads, one task per sequence and head.
#pragma once

#include <cmath>
#include <cstddef>

#include "activations.hpp"
#include "layers.hpp"
#include "matmul.hpp"

namespace train_gpt {

namespace detail {
// One head of one sequence: views into the rows of that sequence.
template <class Real>
struct head_views {
  head_views(transformer_config const& config, std::size_t task, Real* qkv_rows, Real* score_rows, Real* output_rows)
      : size(config.width / config.heads),
        query(qkv_rows + task / config.heads * config.context * 3 * config.width + task % config.heads * size,
              config.context, size, 3 * config.width),
        key(query.data + config.width, config.context, size, 3 * config.width),
        value(key.data + config.width, config.context, size, 3 * config.width),
        scores(score_rows + task * config.context * config.context, config.context, config.context),
        output(output_rows + task / config.heads * config.context * config.width + task % config.heads * size,
               config.context, size, config.width) {}

  std::size_t size;
  matrix<Real> query;
  matrix<Real> key;
  matrix<Real> value;
  matrix<Real> scores;
  matrix<Real> output;
};

template <class Real>
[[nodiscard]] Real score_scale(transformer_config const& config) {
  std::size_t const head_size = config.width / config.heads;
  return Real{1} / std::sqrt(static_cast<Real>(head_size));
}
}  // namespace detail

/// attended = softmax(query * key^T / sqrt(head size), no later tokens) * value, for every head; keeps the probabilities.
template <class Team, class Real>
void attention(Team& team, transformer_config const& config, std::size_t batch,
               typename activations<Real>::block const& block) {
  Real const scale = detail::score_scale<Real>(config);
  team.run(batch * config.heads, [&](std::size_t task) {
    serial_team alone;
    detail::head_views<Real> const head(config, task, block.qkv, block.probabilities, block.attended);
    multiply(alone, head.query, head.key.transposed(), head.scores);
    for (std::size_t row = 0; row < config.context; ++row) {
      Real* const scores = head.scores.at(row, 0);
      for (std::size_t i = 0; i <= row; ++i) scores[i] *= scale;
      softmax(row + 1, scores);
      for (std::size_t i = row + 1; i < config.context; ++i) scores[i] = 0;
    }
    multiply(alone, head.scores, head.value, head.output);
  });
}

/// d_qkv from d_attended and what `attention` left in the block. d_scores: scratch of the size of the probabilities.
template <class Team, class Real>
void attention_backward(Team& team, transformer_config const& config, std::size_t batch,
                        typename activations<Real>::block const& block, Real* d_attended, Real* d_scores, Real* d_qkv) {
  Real const scale = detail::score_scale<Real>(config);
  team.run(batch * config.heads, [&](std::size_t task) {
    serial_team alone;
    detail::head_views<Real> const head(config, task, block.qkv, block.probabilities, block.attended);
    detail::head_views<Real> const d(config, task, d_qkv, d_scores, d_attended);
    multiply(alone, head.scores.transposed(), d.output, d.value);
    multiply(alone, d.output, head.value.transposed(), d.scores);
    for (std::size_t row = 0; row < config.context; ++row) {
      Real const* const p = head.scores.at(row, 0);
      Real* const dp = d.scores.at(row, 0);
      Real const dot = sum_of<Real>(row + 1, [=](std::size_t i) { return p[i] * dp[i]; });
      for (std::size_t i = 0; i <= row; ++i) dp[i] = p[i] * (dp[i] - dot) * scale;
      for (std::size_t i = row + 1; i < config.context; ++i) dp[i] = 0;
    }
    multiply(alone, d.scores, head.key, d.query);
    multiply(alone, d.scores.transposed(), head.query, d.key);
  });
}

}  // namespace train_gpt
