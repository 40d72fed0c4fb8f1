// SPDX-License-Identifier: Apache-2.0
/// What the model is made of: its sizes, its tensors in a fixed order, and their first values.
#pragma once

#include <spillway/core/bf16.hpp>
#include <spillway/core/counter_rng.hpp>
#include <spillway/core/error.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace train_gpt {

/// The sizes of a decoder-only transformer over bytes.
struct transformer_config {
  std::size_t vocabulary = 256;  ///< distinct tokens; a byte-level model has 256
  std::size_t context = 64;      ///< tokens in a sequence
  std::size_t width = 256;       ///< numbers per token in the residual stream
  std::size_t heads = 8;         ///< attention heads; they divide the width
  std::size_t layers = 6;        ///< blocks of attention and MLP
};

/// One parameter tensor.
struct tensor_info {
  std::string name;                ///< as PyTorch would name it: "h.0.attn.qkv.weight"
  std::vector<std::size_t> shape;  ///< row-major; a weight is [outputs, inputs]
  bool decay = false;              ///< weight decay applies: matrices yes, biases and norms no

  [[nodiscard]] std::size_t elements() const {
    std::size_t product = 1;
    for (std::size_t const extent : shape) product *= extent;
    return product;
  }
};

/// The type that a parameter is computed in: fp32 for bf16; float and double compute in themselves.
template <class T>
struct arithmetic {
  using type = T;
};
template <>
struct arithmetic<spillway::bf16> {
  using type = float;
};
template <class T>
using arithmetic_t = typename arithmetic<T>::type;

/// Where a tensor is in the fixed order: the embeddings, then twelve tensors a block, then the final norm.
enum block_tensor : std::size_t {
  ln_1_weight,
  ln_1_bias,
  qkv_weight,
  qkv_bias,
  attention_out_weight,
  attention_out_bias,
  ln_2_weight,
  ln_2_bias,
  mlp_in_weight,
  mlp_in_bias,
  mlp_out_weight,
  mlp_out_bias,
  tensors_per_block
};
inline constexpr std::size_t token_embedding = 0;
inline constexpr std::size_t position_embedding = 1;
[[nodiscard]] constexpr std::size_t index_of(std::size_t layer, block_tensor which) {
  return 2 + layer * tensors_per_block + which;
}
[[nodiscard]] constexpr std::size_t final_norm_weight(transformer_config const& config) {
  return 2 + config.layers * tensors_per_block;
}
[[nodiscard]] constexpr std::size_t final_norm_bias(transformer_config const& config) {
  return final_norm_weight(config) + 1;
}

/// Refuses sizes that make no model, and those so large that sizes in bytes would no longer fit 64 bits.
/// Errors   spillway::error invalid_option, naming the size.
/// Threads  safe.
inline void validate(transformer_config const& config, std::size_t batch) {
  auto const refuse = [](std::string why) {
    throw spillway::error{spillway::errc::invalid_option, {.where = "transformer", .detail = std::move(why)}};
  };
  if (config.vocabulary < 1 || config.vocabulary > 256) refuse("vocabulary must be 1 to 256: tokens are bytes");
  if (config.context < 1) refuse("context must be at least 1");
  if (config.layers < 1) refuse("layers must be at least 1");
  if (batch < 1) refuse("batch must be at least 1");
  if (config.heads < 1 || config.width < 1 || config.width % config.heads != 0) {
    refuse(std::to_string(config.heads) + " heads do not divide a width of " + std::to_string(config.width));
  }
  auto const real = [](std::size_t n) { return static_cast<double>(n); };
  double const tokens = real(batch) * real(config.context);
  double const per_token = 16 * real(config.width) + real(config.heads) * real(config.context);
  double const elements =
      (real(config.layers) + 2) * (tokens * per_token + 12 * real(config.width) * real(config.width));
  if (elements + real(config.context) * real(config.width) > 0x1p56) refuse("the model is too large to be counted");
}

/// All parameter tensors, in the order in which every other call takes them.
/// Errors   none but std::bad_alloc.
/// Threads  safe.
[[nodiscard]] inline std::vector<tensor_info> parameter_tensors(transformer_config const& config) {
  std::size_t const width = config.width;
  std::vector<tensor_info> tensors;
  auto const add = [&](std::string name, std::vector<std::size_t> shape) {
    bool const decay = shape.size() > 1;
    tensors.push_back({std::move(name), std::move(shape), decay});
  };
  add("wte.weight", {config.vocabulary, width});
  add("wpe.weight", {config.context, width});
  for (std::size_t layer = 0; layer < config.layers; ++layer) {
    std::string const block = "h." + std::to_string(layer) + ".";
    add(block + "ln_1.weight", {width});
    add(block + "ln_1.bias", {width});
    add(block + "attn.qkv.weight", {3 * width, width});
    add(block + "attn.qkv.bias", {3 * width});
    add(block + "attn.proj.weight", {width, width});
    add(block + "attn.proj.bias", {width});
    add(block + "ln_2.weight", {width});
    add(block + "ln_2.bias", {width});
    add(block + "mlp.fc.weight", {4 * width, width});
    add(block + "mlp.fc.bias", {4 * width});
    add(block + "mlp.proj.weight", {width, 4 * width});
    add(block + "mlp.proj.bias", {width});
  }
  add("ln_f.weight", {width});
  add("ln_f.bias", {width});
  return tensors;
}

namespace detail {
// A normal value to good approximation, times `deviation`: eight 16-bit uniforms, summed and centred in integers.
// The logarithm and cosine of libm would not give the same bits everywhere.
[[nodiscard]] inline float normal_value(float deviation, std::uint64_t seed, std::size_t tensor,
                                        std::uint64_t element) {
  auto const [words] =
      spillway::philox4x32({{static_cast<std::uint32_t>(element), static_cast<std::uint32_t>(element >> 32U),
                             static_cast<std::uint32_t>(tensor), 0}},
                           seed);
  std::uint32_t sum = 0;
  for (std::uint32_t const word : words) sum += (word & 0xffffU) + (word >> 16U);
  constexpr std::int32_t mean = 4 * 0xffff;
  constexpr float unit = 1.22474487F / 65536;  // a uniform has a variance of 1/12
  return deviation * unit * static_cast<float>(static_cast<std::int32_t>(sum) - mean);
}
}  // namespace detail

/// The first values of one tensor, as GPT-2 has them: weights normal with deviation 0.02, those that write to the residual
/// stream smaller by sqrt(2 * layers), biases 0, norms 1. The same bits on every machine.
/// Pre      tensor is an index into parameter_tensors(config); out has its number of elements.
/// Errors   none.
/// Threads  safe on different spans.
inline void initialise(transformer_config const& config, std::uint64_t seed, std::size_t tensor, std::span<float> out) {
  // The final norm follows the last block, so its two tensors look like the first norm of one more.
  auto const which =
      static_cast<block_tensor>(tensor > position_embedding ? (tensor - 2) % tensors_per_block : qkv_weight);
  switch (which) {
    case qkv_weight:
    case mlp_in_weight:
    case attention_out_weight:
    case mlp_out_weight: {
      bool const to_stream = which == attention_out_weight || which == mlp_out_weight;
      float const deviation = to_stream ? 0.02F / std::sqrt(2.0F * static_cast<float>(config.layers)) : 0.02F;
      for (std::size_t i = 0; i < out.size(); ++i) out[i] = detail::normal_value(deviation, seed, tensor, i);
      return;
    }
    case ln_1_weight:
    case ln_2_weight:
      std::fill(out.begin(), out.end(), 1.0F);
      return;
    default:
      std::fill(out.begin(), out.end(), 0.0F);
      return;
  }
}

}  // namespace train_gpt
