// SPDX-License-Identifier: Apache-2.0
#include "train_gpt/matmul.hpp"

#include <spillway/core/bf16.hpp>
#include <spillway/core/counter_rng.hpp>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "support/catch.hpp"
#include "thread_team.hpp"

namespace {

using train_gpt::into;
using train_gpt::matrix;
using train_gpt::serial_team;

// Integers from -8 to 8: products of them are summed exactly in fp32, whatever the order, so results must be equal.
std::vector<float> small_integers(std::size_t count, std::uint64_t seed) {
  spillway::counter_rng random{.seed = seed};
  std::vector<float> values(count);
  for (float& value : values) value = static_cast<float>(static_cast<int>(random() % 17U) - 8);
  return values;
}

std::vector<float> reals(std::size_t count, std::uint64_t seed) {
  spillway::counter_rng random{.seed = seed};
  std::vector<float> values(count);
  for (float& value : values) value = static_cast<float>(random()) / 4294967296.0F - 0.5F;
  return values;
}

template <class A, class B>
double naive(matrix<A> a, matrix<B> b, std::size_t row, std::size_t column) {
  double sum = 0;
  for (std::size_t k = 0; k < b.rows; ++k) {
    sum += static_cast<double>(*a.at(row, k)) * static_cast<double>(static_cast<float>(*b.at(k, column)));
  }
  return sum;
}

template <class T>
matrix<T> view(std::vector<T>& data, std::size_t rows, std::size_t columns, bool transposed) {
  return transposed ? matrix<T>(data.data(), columns, rows).transposed() : matrix<T>(data.data(), rows, columns);
}

struct shape {
  std::size_t m, k, n;
};
// Around the tile of every kernel, the depth of a panel (256) and the rows of a task (256).
constexpr shape shapes[] = {{1, 1, 1},    {2, 3, 5},    {7, 31, 33},   {8, 256, 32},  {9, 257, 31},
                            {64, 40, 64}, {257, 5, 70}, {300, 513, 3}, {13, 600, 65}, {5, 64, 256}};

template <class Multiply>
void check_all_shapes(Multiply const& multiply) {
  for (shape const s : shapes) {
    for (unsigned variant = 0; variant < 8; ++variant) {
      auto a_data = small_integers(s.m * s.k, 1);
      auto b_data = small_integers(s.k * s.n, 2);
      auto const before = small_integers(s.m * s.n, 3);
      auto c_data = before;
      auto const a = view(a_data, s.m, s.k, (variant & 1U) != 0);
      auto const b = view(b_data, s.k, s.n, (variant & 2U) != 0);
      auto const mode = (variant & 4U) != 0 ? into::add : into::replace;
      multiply(a, b, matrix<float>(c_data.data(), s.m, s.n), mode);
      std::size_t wrong = 0;
      for (std::size_t i = 0; i < s.m * s.n; ++i) {
        double const old = mode == into::add ? static_cast<double>(before[i]) : 0;
        if (static_cast<double>(c_data[i]) != naive(a, b, i / s.n, i % s.n) + old) ++wrong;
      }
      INFO(s.m << " x " << s.k << " x " << s.n << " variant " << variant);
      CHECK(wrong == 0);
    }
  }
}

}  // namespace

TEST_CASE("matmul: every shape, transposition and mode equals the naive product") {
  serial_team team;
  check_all_shapes([&](auto a, auto b, auto c, into mode) { train_gpt::multiply(team, a, b, c, mode); });
}

TEST_CASE("matmul: the kernel for each instruction set equals the naive product") {
  serial_team team;
  using namespace train_gpt::detail;
  check_all_shapes([&](auto a, auto b, auto c, into mode) { multiply_with<baseline_kernel>(team, a, b, c, mode); });
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx2") != 0 && __builtin_cpu_supports("fma") != 0) {
    check_all_shapes([&](auto a, auto b, auto c, into mode) { multiply_with<avx2_kernel>(team, a, b, c, mode); });
  }
  if (__builtin_cpu_supports("avx512f") != 0) {
    check_all_shapes([&](auto a, auto b, auto c, into mode) { multiply_with<avx512_kernel>(team, a, b, c, mode); });
  }
#endif
}

TEST_CASE("matmul: real numbers are within the rounding of fp32 of a product in double") {
  serial_team team;
  std::size_t const m = 37;
  std::size_t const k = 400;
  std::size_t const n = 45;
  auto a_data = reals(m * k, 4);
  auto b_data = reals(k * n, 5);
  std::vector<float> c_data(m * n);
  auto const a = view(a_data, m, k, false);
  auto const b = view(b_data, k, n, false);
  train_gpt::multiply(team, a, b, matrix<float>(c_data.data(), m, n));
  double worst = 0;
  for (std::size_t i = 0; i < m * n; ++i) {
    worst = std::fmax(worst, std::fabs(static_cast<double>(c_data[i]) - naive(a, b, i / n, i % n)));
  }
  CHECK(worst < 2e-5);  // a random sum of 400 products below 1/4, each rounded to 2^-24 of the sum
  CHECK(worst > 0);
}

TEST_CASE("matmul: a bf16 operand is widened") {
  std::size_t const m = 20;
  std::size_t const k = 300;
  std::size_t const n = 50;
  serial_team team;
  auto a_data = small_integers(m * k, 6);
  std::vector<spillway::bf16> b_data;
  for (float const value : small_integers(k * n, 7)) b_data.push_back(spillway::narrow(value));
  std::vector<float> c_data(m * n);
  for (bool const transposed : {false, true}) {
    auto const a = view(a_data, m, k, false);
    auto const b = view(b_data, k, n, transposed);
    train_gpt::multiply(team, a, b, matrix<float>(c_data.data(), m, n));
    std::size_t wrong = 0;
    for (std::size_t i = 0; i < c_data.size(); ++i) {
      if (static_cast<double>(c_data[i]) != naive(a, b, i / n, i % n)) ++wrong;
    }
    CHECK(wrong == 0);
  }
}

TEST_CASE("matmul: only the columns of the output view are written") {
  serial_team team;
  auto a_data = small_integers(40, 8);
  auto b_data = small_integers(24, 9);
  std::vector<float> c_data(10 * 9, 77.0F);
  train_gpt::multiply(team, view(a_data, 10, 4, false), view(b_data, 4, 6, false),
                      matrix<float>(c_data.data() + 1, 10, 6, 9));
  for (std::size_t row = 0; row < 10; ++row) {
    for (std::size_t const column : {0U, 7U, 8U}) CHECK(c_data[row * 9 + column] == 77.0F);
    CHECK(static_cast<double>(c_data[row * 9 + 1]) ==
          naive(view(a_data, 10, 4, false), view(b_data, 4, 6, false), row, 0));
  }
}

TEST_CASE("matmul: any number of threads gives the same bits") {
  std::size_t const m = 520;
  std::size_t const k = 300;
  std::size_t const n = 100;
  auto a_data = reals(m * k, 10);
  auto b_data = reals(k * n, 11);
  std::vector<float> alone(m * n);
  serial_team serial;
  train_gpt::multiply(serial, view(a_data, m, k, false), view(b_data, k, n, false), matrix<float>(alone.data(), m, n));
  for (unsigned const threads : {1U, 2U, 3U, 5U}) {
    thread_team team(threads);
    std::vector<float> together(m * n);
    train_gpt::multiply(team, view(a_data, m, k, false), view(b_data, k, n, false),
                        matrix<float>(together.data(), m, n));
    CHECK(together == alone);
  }
}
