// SPDX-License-Identifier: Apache-2.0
/// The elementwise parts of a transformer, forward and backward: layer norm, GELU, biases, softmax with cross-entropy.
/// Loops are plain, so that any compiler vectorises them; each output is computed by one task in one order.
#pragma once

#include <spillway/core/bf16.hpp>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "team.hpp"

namespace train_gpt {

inline constexpr std::size_t rows_a_piece = 16;     // of tokens, for work that goes row by row
inline constexpr std::size_t columns_a_piece = 64;  // for sums over all tokens

/// e^x. In fp32 by range reduction and a polynomial (Cephes), which vectorises where std::exp does not; within 2 units in the
/// last place for -87 to 87, constant beyond. Infinity and NaN give NaN, so that a diverged step is noticed.
template <class Real>
[[nodiscard]] inline Real exponential(Real x) {
  if constexpr (std::is_same_v<Real, float>) {
    // The magnitude is limited as an integer: g++ turns the comparison of floats into branches.
    auto const bits = std::bit_cast<std::uint32_t>(x);
    auto const magnitude = std::min(static_cast<std::int32_t>(bits & 0x7fffffffU), std::bit_cast<std::int32_t>(87.0F));
    auto const y = std::bit_cast<float>(static_cast<std::uint32_t>(magnitude) | (bits & 0x80000000U));
    // Adding 1.5 * 2^23 rounds to an integer and leaves it in the low bits.
    float const shifted = y * 1.44269504F + 12582912.0F;
    float const n = shifted - 12582912.0F;
    float const r = (y - n * 0.693359375F) + n * 2.12194440e-4F;
    float p = 1.9875691500e-4F;
    p = p * r + 1.3981999507e-3F;
    p = p * r + 8.3334519073e-3F;
    p = p * r + 4.1665795894e-2F;
    p = p * r + 1.6666665459e-1F;
    p = p * r + 5.0000001201e-1F;
    std::uint32_t const power = std::bit_cast<std::uint32_t>(shifted) - 0x4b400000U;
    return (p * r * r + r + 1.0F) * std::bit_cast<float>((power + 127U) << 23U) + 0.0F * x;
  } else {
    return std::exp(x);
  }
}

/// The sum of term(0) to term(n - 1) in a fixed order that fits vector registers: 16 sums side by side, then those.
template <class Real, class Term>
[[nodiscard]] inline Real sum_of(std::size_t n, Term const& term) {
  constexpr std::size_t lanes = 16;
  std::array<Real, lanes> part{};
  std::size_t const whole = n / lanes * lanes;
  for (std::size_t i = 0; i < whole; i += lanes) {
    for (std::size_t lane = 0; lane < lanes; ++lane) part[lane] += term(i + lane);
  }
  for (std::size_t i = whole; i < n; ++i) part[i - whole] += term(i);
  for (std::size_t half = lanes / 2; half > 0; half /= 2) {
    for (std::size_t lane = 0; lane < half; ++lane) part[lane] += part[lane + half];
  }
  return part[0];
}

/// out = (in - mean) * inverse_deviation * gain + bias, row by row; leaves the statistics for the backward pass.
/// Shapes   in, out: [rows, width]; gain, bias: [width]; mean, inverse_deviation: [rows].
template <class Team, class T, class Real>
void layer_norm(Team& team, std::size_t rows, std::size_t width, Real const* in, T const* gain, T const* bias,
                Real* out, Real* mean, Real* inverse_deviation) {
  for_pieces(team, rows, rows_a_piece, [=](std::size_t begin, std::size_t end) {
    for (std::size_t row = begin; row < end; ++row) {
      Real const* const x = in + row * width;
      Real* const y = out + row * width;
      auto const n = static_cast<Real>(width);
      Real const m = sum_of<Real>(width, [x](std::size_t i) { return x[i]; }) / n;
      Real const variance = sum_of<Real>(width, [x, m](std::size_t i) { return (x[i] - m) * (x[i] - m); }) / n;
      Real const inverse = Real{1} / std::sqrt(variance + static_cast<Real>(1e-5));
      for (std::size_t i = 0; i < width; ++i) {
        y[i] = (x[i] - m) * inverse * static_cast<Real>(gain[i]) + static_cast<Real>(bias[i]);
      }
      mean[row] = m;
      inverse_deviation[row] = inverse;
    }
  });
}

/// Adds the gradient through a layer norm to d_in.
/// Shapes   d_out, in, d_in: [rows, width]; gain: [width]; mean, inverse_deviation: [rows], as layer_norm left them.
template <class Team, class T, class Real>
void layer_norm_backward(Team& team, std::size_t rows, std::size_t width, Real const* d_out, Real const* in,
                         T const* gain, Real const* mean, Real const* inverse_deviation, Real* d_in) {
  for_pieces(team, rows, rows_a_piece, [=](std::size_t begin, std::size_t end) {
    for (std::size_t row = begin; row < end; ++row) {
      Real const* const x = in + row * width;
      Real const* const dy = d_out + row * width;
      Real* const dx = d_in + row * width;
      Real const m = mean[row];
      Real const inverse = inverse_deviation[row];
      auto const n = static_cast<Real>(width);
      auto const scaled = [=](std::size_t i) { return dy[i] * static_cast<Real>(gain[i]); };
      auto const normal = [=](std::size_t i) { return (x[i] - m) * inverse; };
      Real const average = sum_of<Real>(width, scaled) / n;
      Real const slope = sum_of<Real>(width, [=](std::size_t i) { return scaled(i) * normal(i); }) / n;
      for (std::size_t i = 0; i < width; ++i) dx[i] += inverse * (scaled(i) - average - normal(i) * slope);
    }
  });
}

/// The gradient of a layer norm's gain: for each column the sum over rows of d_out times the normalised input.
template <class Team, class Real>
void layer_norm_gain_backward(Team& team, std::size_t rows, std::size_t width, Real const* d_out, Real const* in,
                              Real const* mean, Real const* inverse_deviation, Real* d_gain) {
  for_pieces(team, width, columns_a_piece, [=](std::size_t begin, std::size_t end) {
    for (std::size_t i = begin; i < end; ++i) d_gain[i] = 0;
    for (std::size_t row = 0; row < rows; ++row) {
      Real const* const x = in + row * width;
      Real const* const dy = d_out + row * width;
      for (std::size_t i = begin; i < end; ++i) d_gain[i] += dy[i] * ((x[i] - mean[row]) * inverse_deviation[row]);
    }
  });
}

/// The gradient of a bias: for each column the sum of d_out over rows.
template <class Team, class Real>
void bias_backward(Team& team, std::size_t rows, std::size_t width, Real const* d_out, Real* d_bias) {
  for_pieces(team, width, columns_a_piece, [=](std::size_t begin, std::size_t end) {
    for (std::size_t i = begin; i < end; ++i) d_bias[i] = 0;
    for (std::size_t row = 0; row < rows; ++row) {
      for (std::size_t i = begin; i < end; ++i) d_bias[i] += d_out[row * width + i];
    }
  });
}

/// Fills each row of out with the bias, plus the same row of `in` unless that is null: what a product is then added to.
template <class Team, class T, class Real>
void start_from_bias(Team& team, std::size_t rows, std::size_t width, T const* bias, Real const* in, Real* out) {
  for_pieces(team, rows, rows_a_piece, [=](std::size_t begin, std::size_t end) {
    for (std::size_t row = begin; row < end; ++row) {
      Real* const y = out + row * width;
      for (std::size_t i = 0; i < width; ++i) y[i] = static_cast<Real>(bias[i]);
      if (in == nullptr) continue;
      for (std::size_t i = 0; i < width; ++i) y[i] += in[row * width + i];
    }
  });
}

// GELU with the tanh approximation (Hendrycks & Gimpel, arXiv:1606.08415), written as x * sigmoid(2u).
template <class Real>
[[nodiscard]] inline Real gelu_sigmoid(Real x) {
  Real const u2 = static_cast<Real>(1.5957691216057308) * (x + static_cast<Real>(0.044715) * x * x * x);
  return Real{1} / (Real{1} + exponential(-u2));
}

/// out = gelu(in), elementwise.
template <class Team, class Real>
void gelu(Team& team, std::size_t count, Real const* in, Real* out) {
  for_pieces(team, count, 4096, [=](std::size_t begin, std::size_t end) {
    for (std::size_t i = begin; i < end; ++i) out[i] = in[i] * gelu_sigmoid(in[i]);
  });
}

/// Multiplies gradient by the derivative of gelu at `in`, elementwise.
template <class Team, class Real>
void gelu_backward(Team& team, std::size_t count, Real const* in, Real* gradient) {
  for_pieces(team, count, 4096, [=](std::size_t begin, std::size_t end) {
    for (std::size_t i = begin; i < end; ++i) {
      Real const x = in[i];
      Real const s = gelu_sigmoid(x);
      Real const u2_slope = static_cast<Real>(1.5957691216057308) * (Real{1} + static_cast<Real>(3 * 0.044715) * x * x);
      gradient[i] *= s + x * s * (Real{1} - s) * u2_slope;
    }
  });
}

/// Turns `count` scores into probabilities in place; returns the logarithm of the sum that they were divided by.
template <class Real>
inline Real softmax(std::size_t count, Real* scores) {
  Real highest = scores[0];
  for (std::size_t i = 1; i < count; ++i) highest = highest < scores[i] ? scores[i] : highest;
  for (std::size_t i = 0; i < count; ++i) scores[i] = exponential(scores[i] - highest);
  Real const sum = sum_of<Real>(count, [scores](std::size_t i) { return scores[i]; });
  for (std::size_t i = 0; i < count; ++i) scores[i] /= sum;
  return highest + std::log(sum);
}

/// Narrows a gradient to the type it is stored in.
template <class Team, class Real, class T>
void store_gradient(Team& team, std::size_t count, Real const* from, T* to) {
  for_pieces(team, count, 16384, [=](std::size_t begin, std::size_t end) {
    for (std::size_t i = begin; i < end; ++i) {
      if constexpr (std::is_same_v<T, spillway::bf16>) {
        to[i] = spillway::narrow(from[i]);
      } else {
        to[i] = from[i];
      }
    }
  });
}

}  // namespace train_gpt
