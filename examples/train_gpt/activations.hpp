// SPDX-License-Identifier: Apache-2.0
/// Where everything that is not a parameter lives: what forward leaves for backward, and scratch, all in one span of bytes.
#pragma once

#include <spillway/core/bytes.hpp>

#include <algorithm>
#include <cstddef>

#include "model.hpp"

namespace train_gpt {

/// Hands out pieces of one piece of memory, each on a cache line. On a null pointer it only counts.
class arena {
 public:
  explicit arena(std::byte* memory = nullptr) : memory_(memory) {}

  template <class Real>
  [[nodiscard]] Real* take(std::size_t elements) {
    auto* const piece = memory_ == nullptr ? nullptr : reinterpret_cast<Real*>(memory_ + used_);
    used_ += spillway::round_up(elements * sizeof(Real), 64);
    return piece;
  }
  [[nodiscard]] spillway::bytes used() const { return spillway::bytes{used_}; }

 private:
  std::byte* memory_;
  std::size_t used_ = 0;
};

/// The buffers of one step. Row-major, a row per token; a batch is its sequences one after the other.
template <class Real>
struct activations {
  /// What one block keeps for its backward pass. Layer norms and the GELU are computed again instead: that costs a few per
  /// cent of the time and saves more than a third of the memory.
  struct block {
    Real* input;          ///< [tokens, width]: the residual stream on entry
    Real* qkv;            ///< [tokens, 3 * width]: queries, keys, values
    Real* probabilities;  ///< [sequences, heads, context, context]
    Real* attended;       ///< [tokens, width]: the heads' outputs side by side
    Real* middle;         ///< [tokens, width]: the residual stream between attention and MLP
    Real* hidden;         ///< [tokens, 4 * width]: before the GELU
    Real* output;         ///< [tokens, width]: the next block's input
  };

  activations(transformer_config const& config, std::size_t batch, arena& memory)
      : tokens(batch * config.context),
        width(config.width),
        scores(batch * config.heads * config.context * config.context) {
    std::size_t const layers = config.layers;
    stream = memory.take<Real>((layers + 1) * tokens * width);
    qkv = memory.take<Real>(layers * tokens * 3 * width);
    probabilities = memory.take<Real>(layers * scores);
    attended = memory.take<Real>(layers * tokens * width);
    middle = memory.take<Real>(layers * tokens * width);
    hidden = memory.take<Real>(layers * tokens * 4 * width);
    normed = memory.take<Real>(tokens * width);
    mean = memory.take<Real>(tokens);
    inverse_deviation = memory.take<Real>(tokens);
    activated = memory.take<Real>(tokens * 4 * width);
    logits = memory.take<Real>(tokens * config.vocabulary);
    losses = memory.take<Real>(tokens);
    d_stream = memory.take<Real>(tokens * width);
    d_branch = memory.take<Real>(tokens * width);
    d_hidden = memory.take<Real>(tokens * 4 * width);
    d_scores = memory.take<Real>(scores);
    d_parameter = memory.take<Real>(std::max(4 * width, config.context) * width);
    d_embedding = memory.take<Real>(config.vocabulary * width);
  }

  [[nodiscard]] block of(std::size_t layer) const {
    std::size_t const n = tokens * width;
    return {stream + layer * n, qkv + 3 * layer * n,    probabilities + layer * scores, attended + layer * n,
            middle + layer * n, hidden + 4 * layer * n, stream + (layer + 1) * n};
  }

  std::size_t tokens;
  std::size_t width;
  std::size_t scores;
  Real* stream;  // block inputs, then the last block's output
  Real* qkv;     // this and the next four: all layers of what block names
  Real* probabilities;
  Real* attended;
  Real* middle;
  Real* hidden;
  Real* normed;  // output of the layer norm at hand, and its statistics
  Real* mean;
  Real* inverse_deviation;
  Real* activated;  // output of the GELU at hand
  Real* logits;     // after the loss: probabilities of the next token
  Real* losses;     // of each token
  Real* d_stream;   // gradients; the residual stream's
  Real* d_branch;   // of a branch's input
  Real* d_hidden;   // of a branch's widest part: qkv or hidden
  Real* d_scores;
  Real* d_parameter;  // one tensor's at a time
  Real* d_embedding;  // the tied embedding's: from the head, kept until the input side adds to it
};

}  // namespace train_gpt
