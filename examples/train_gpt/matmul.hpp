// SPDX-License-Identifier: Apache-2.0
/// Matrix products without a BLAS. Every output element is one sum in a fixed order, so the bits do not depend on the number
/// of threads. They may differ between instruction sets (fused multiply-add or not): only the library's update kernels promise
/// the same bits on every machine.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <type_traits>

#include "team.hpp"

namespace train_gpt {

/// A matrix in memory that someone else owns. Transposing swaps the strides and moves nothing.
template <class T>
struct matrix {
  T* data = nullptr;
  std::size_t rows = 0;
  std::size_t columns = 0;
  std::size_t row_stride = 0;
  std::size_t column_stride = 1;

  matrix(T* first, std::size_t row_count, std::size_t column_count, std::size_t stride)
      : data(first), rows(row_count), columns(column_count), row_stride(stride) {}
  matrix(T* first, std::size_t row_count, std::size_t column_count)
      : matrix(first, row_count, column_count, column_count) {}

  [[nodiscard]] matrix transposed() const {
    matrix other(data, columns, rows, column_stride);
    other.column_stride = row_stride;
    return other;
  }
  [[nodiscard]] T* at(std::size_t row, std::size_t column) const {
    return data + row * row_stride + column * column_stride;
  }
};

/// What a product does to the matrix it is written to.
enum class into { replace, add };

namespace detail {

inline constexpr std::size_t max_depth = 256;      // of a packed panel: 32 KiB with 32 floats a row, an L1 cache
inline constexpr std::size_t rows_per_task = 256;  // one packing serves so many rows

// A micro-kernel: tile = a * panel, where `a` is `rows` rows of any strides and `panel` is depth x columns, packed and aligned.
// The tile lives in registers, hence the shapes. A macro, since g++ lowers generic vectors for the instruction set of the
// function they are written in: a shared inline body would become SSE code.
// NOLINTBEGIN(modernize-avoid-c-arrays, bugprone-macro-parentheses): arrays of vectors that stay in registers, plain numbers
#define TRAIN_GPT_MICRO_KERNEL(name, instruction_set, vector_bytes, tile_rows, tile_vectors)                        \
  template <class Real>                                                                                             \
  struct name {                                                                                                     \
    using vector __attribute__((vector_size(vector_bytes), may_alias)) = Real;                                      \
    static constexpr std::size_t lanes = vector_bytes / sizeof(Real);                                               \
    static constexpr std::size_t rows = tile_rows;                                                                  \
    static constexpr std::size_t columns = tile_vectors * lanes;                                                    \
    instruction_set static void run(std::size_t depth, Real const* const* a, std::size_t a_step, Real const* panel, \
                                    Real* tile) {                                                                   \
      vector sum[tile_rows][tile_vectors] = {};                                                                     \
      Real const* row[tile_rows];                                                                                   \
      for (std::size_t r = 0; r < tile_rows; ++r) row[r] = a[r];                                                    \
      for (std::size_t k = 0; k < depth; ++k, panel += columns) {                                                   \
        auto const* const b = reinterpret_cast<vector const*>(panel);                                               \
        for (std::size_t r = 0; r < tile_rows; ++r) {                                                               \
          for (std::size_t v = 0; v < tile_vectors; ++v) sum[r][v] += *row[r] * b[v];                               \
          row[r] += a_step;                                                                                         \
        }                                                                                                           \
      }                                                                                                             \
      for (std::size_t r = 0; r < tile_rows; ++r) {                                                                 \
        auto* const out = reinterpret_cast<vector*>(tile) + r * tile_vectors;                                       \
        for (std::size_t v = 0; v < tile_vectors; ++v) out[v] = sum[r][v];                                          \
      }                                                                                                             \
    }                                                                                                               \
  };
TRAIN_GPT_MICRO_KERNEL(baseline_kernel, , 16, 4, 2)
#if defined(__x86_64__)
TRAIN_GPT_MICRO_KERNEL(avx2_kernel, __attribute__((target("avx2,fma"))), 32, 6, 2)
TRAIN_GPT_MICRO_KERNEL(avx512_kernel, __attribute__((target("avx512f"))), 64, 8, 2)
#endif
#undef TRAIN_GPT_MICRO_KERNEL
// NOLINTEND(modernize-avoid-c-arrays, bugprone-macro-parentheses)

// Copies a slice of b, widened and padded with zeros, so that the micro-kernel reads it in order.
template <std::size_t Columns, class B, class Real>
void pack(matrix<B> b, Real* panel) {
  for (std::size_t j = b.columns; j < Columns; ++j) {
    for (std::size_t k = 0; k < b.rows; ++k) panel[k * Columns + j] = Real{0};
  }
  if (b.column_stride == 1) {
    for (std::size_t k = 0; k < b.rows; ++k) {
      for (std::size_t j = 0; j < b.columns; ++j) panel[k * Columns + j] = static_cast<Real>(*b.at(k, j));
    }
  } else {
    for (std::size_t j = 0; j < b.columns; ++j) {
      for (std::size_t k = 0; k < b.rows; ++k) panel[k * Columns + j] = static_cast<Real>(*b.at(k, j));
    }
  }
}

template <template <class> class Kernel, class Team, class A, class B, class Real>
void multiply_with(Team& team, matrix<A> a, matrix<B> b, matrix<Real> c, into mode) {
  using kernel = Kernel<Real>;
  std::size_t const row_blocks = (c.rows + rows_per_task - 1) / rows_per_task;
  std::size_t const panels = (c.columns + kernel::columns - 1) / kernel::columns;
  team.run(row_blocks * panels, [&](std::size_t task) {
    alignas(64) std::array<Real, max_depth * kernel::columns> panel;
    alignas(64) std::array<Real, kernel::rows * kernel::columns> tile;
    std::array<Real const*, kernel::rows> row;
    std::size_t const first_row = task / panels * rows_per_task;
    std::size_t const last_row = std::min(c.rows, first_row + rows_per_task);
    std::size_t const first_column = task % panels * kernel::columns;
    std::size_t const width = std::min(kernel::columns, c.columns - first_column);
    for (std::size_t k = 0; k < b.rows; k += max_depth) {
      matrix<B> slice = b;
      slice.data = b.at(k, first_column);
      slice.rows = std::min(max_depth, b.rows - k);
      slice.columns = width;
      pack<kernel::columns>(slice, panel.data());
      bool const add = k != 0 || mode == into::add;
      for (std::size_t i = first_row; i < last_row; i += kernel::rows) {
        std::size_t const height = std::min(kernel::rows, last_row - i);
        // Rows past the edge repeat the last one; their results are not copied out.
        for (std::size_t r = 0; r < kernel::rows; ++r) row[r] = a.at(i + std::min(r, height - 1), k);
        kernel::run(slice.rows, row.data(), a.column_stride, panel.data(), tile.data());
        for (std::size_t r = 0; r < height; ++r) {
          Real* const out = c.at(i + r, first_column);
          for (std::size_t j = 0; j < width; ++j) out[j] = tile[r * kernel::columns + j] + (add ? out[j] : Real{0});
        }
      }
    }
  });
}

}  // namespace detail

/// c = a * b, or c += a * b. Products with a transposed operand are written with `transposed()`.
/// Shapes   a: [m, k], b: [k, n], c: [m, n]; b may be narrower than c: it is widened element by element.
/// Pre      k > 0; c has column_stride 1 and overlaps neither a nor b.
/// Errors   what the team throws.
/// Threads  the work is split by the shape of c alone, so the result has the same bits with any team.
/// Cost     about 32 KiB of stack in each thread of the team; no allocation.
template <class Team, class A, class B, class Real>
void multiply(Team& team, matrix<A> a, matrix<B> b, matrix<Real> c, into mode = into::replace) {
  static_assert(std::is_same_v<std::remove_const_t<A>, Real>);
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f") != 0) return detail::multiply_with<detail::avx512_kernel>(team, a, b, c, mode);
  if (__builtin_cpu_supports("avx2") != 0 && __builtin_cpu_supports("fma") != 0) {
    return detail::multiply_with<detail::avx2_kernel>(team, a, b, c, mode);
  }
#endif
  detail::multiply_with<detail::baseline_kernel>(team, a, b, c, mode);
}

}  // namespace train_gpt
