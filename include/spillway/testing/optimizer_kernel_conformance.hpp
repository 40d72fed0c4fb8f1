// SPDX-License-Identifier: Apache-2.0
/// What an OptimizerKernel promises beyond what the compiler checks, as a list of broken laws. For users' own kernels too.
#pragma once

#include <spillway/core/exact_arithmetic.hpp>
#include <spillway/core/lanes.hpp>
#include <spillway/optimizer/optimizer_kernel_concept.hpp>
#include <spillway/testing/detail/law_list.hpp>

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace spillway::inline v0::testing {

namespace detail {

template <OptimizerKernel K>
class optimizer_kernel_check {
 public:
  explicit optimizer_kernel_check(K const& kernel) : kernel_(kernel) {}

  [[nodiscard]] std::vector<std::string> run() {
    float_environment const exact;
    laws_.law("names", [this] { names(); });
    laws_.law("purity", [this] { purity(); });
    if constexpr (ElementKernel<K>) laws_.law("value types", [this] { value_types(); });
    if constexpr (TensorKernel<K>) laws_.law("bounds", [this] { bounds(); });
    laws_.law("zeros", [this] { zeros(); });
    laws_.law("learning rate", [this] { learning_rate(); });
    laws_.law("late steps", [this] { late_steps(); });
    return laws_.take();
  }

 private:
  static constexpr std::size_t arrays = K::arrays.size();
  static constexpr std::size_t count = 20 * lanes::width;
  using values = std::array<std::vector<float>, arrays>;

  static std::uint32_t bits(float x) noexcept { return std::bit_cast<std::uint32_t>(x); }
  static bool finite(float x) noexcept { return (bits(x) & 0x7f800000U) != 0x7f800000U; }
  static bool all_finite(values const& state) {
    for (auto const& array : state) {
      for (float const x : array) {
        if (!finite(x)) return false;
      }
    }
    return true;
  }
  static bool same(values const& a, values const& b) {
    for (std::size_t i = 0; i < arrays; ++i) {
      for (std::size_t e = 0; e < count; ++e) {
        if (bits(a[i][e]) != bits(b[i][e])) return false;
      }
    }
    return true;
  }
  static values filled(float master, float rest) {
    values out;
    for (std::size_t i = 0; i < arrays; ++i) out[i].assign(count, i == 0 ? master : rest);
    return out;
  }
  /// Any bits at all: denormals, infinities and NaN among them.
  static std::vector<float> any_bits(std::uint64_t seed) {
    std::vector<std::byte> raw(count * sizeof(float));
    fill_pattern(raw, seed);
    std::vector<float> out(count);
    for (std::size_t e = 0; e < count; ++e) std::memcpy(&out[e], &raw[e * sizeof(float)], sizeof(float));
    return out;
  }
  /// From -1 to 1.
  static std::vector<float> usual(std::uint64_t seed) {
    std::vector<std::byte> raw(count * 2);
    fill_pattern(raw, seed);
    std::vector<float> out(count);
    for (std::size_t e = 0; e < count; ++e) {
      int const number = std::to_integer<int>(raw[2 * e]) * 256 + std::to_integer<int>(raw[2 * e + 1]) - 32768;
      out[e] = static_cast<float>(number) / 32768.0F;
    }
    return out;
  }

  /// One step in place, by any value type; whole tensors are one-dimensional.
  template <class V>
  void step(values& state, std::vector<float> const& gradient, kernel_step number) const {
    auto const constants = kernel_.prepare(number);
    if constexpr (ElementKernel<K>) {
      for (std::size_t e = 0; e < count; e += V::width) {
        V elements[arrays];
        for (std::size_t a = 0; a < arrays; ++a) elements[a] = V::load(&state[a][e]);
        K::update(constants, V::load(&gradient[e]), elements);
        for (std::size_t a = 0; a < arrays; ++a) elements[a].store(&state[a][e]);
      }
    } else {
      std::uint64_t const shape[] = {count};
      std::array<std::span<float>, arrays> spans;
      for (std::size_t a = 0; a < arrays; ++a) spans[a] = state[a];
      K::update_tensor(constants, shape, std::span<float const>{gradient}, spans);
    }
  }

  void names() {
    std::set<std::string_view> seen;
    for (std::string_view const name : K::arrays) {
      laws_.expect(!name.empty(), "an array has no name");
      laws_.expect(seen.insert(name).second, "two arrays are named " + std::string(name));
    }
    laws_.expect(arrays > 0 && std::string_view(K::arrays[0]) == "master", "the first array is not the master");
    laws_.expect(!std::string_view(K::name).empty(), "the kernel has no name");
    laws_.expect(K::passes >= 1, "no pass over the state");
  }
  void purity() {
    values a;
    for (std::size_t i = 0; i < arrays; ++i) a[i] = usual(i + 1);
    values b = a;
    auto const gradient = usual(50);
    step<f32>(a, gradient, {.number = 3});
    values unrelated = filled(1, 1);
    step<f32>(unrelated, gradient, {.number = 90, .learning_rate_factor = 0.5});
    step<f32>(b, gradient, {.number = 3});
    laws_.expect(same(a, b), "the same state and gradient give other bits the second time");
  }
  void value_types() {
    for (std::uint64_t round = 0; round < 50; ++round) {
      values one;
      for (std::size_t i = 0; i < arrays; ++i)
        one[i] = round % 2 == 0 ? usual(100 * round + i) : any_bits(100 * round + i);
      values many = one;
      for (std::uint64_t number = 1; number <= 3; ++number) {
        auto const gradient = round % 2 == 0 ? usual(100 * round + 90 + number) : any_bits(100 * round + 90 + number);
        step<f32>(one, gradient, {.number = number * number * number, .learning_rate_factor = 0.75});
        step<lanes>(many, gradient, {.number = number * number * number, .learning_rate_factor = 0.75});
      }
      if (!same(one, many)) return laws_.expect(false, "f32 and lanes give other bits, round " + std::to_string(round));
    }
  }
  void bounds() {
    constexpr float guard = 12345.0F;
    for (std::size_t const n : {std::size_t{1}, std::size_t{7}, std::size_t{64}}) {
      std::array<std::vector<float>, arrays> state;
      std::array<std::span<float>, arrays> spans;
      for (std::size_t a = 0; a < arrays; ++a) {
        state[a].assign(n + 2, guard);
        spans[a] = std::span{state[a]}.subspan(1, n);
        for (float& x : spans[a]) x = 0.25F;
      }
      std::vector<float> const gradient(n, 0.5F);
      std::uint64_t const shape[] = {n};
      K::update_tensor(kernel_.prepare({}), shape, std::span<float const>{gradient}, spans);
      for (auto const& array : state) {
        laws_.expect(array.front() == guard && array.back() == guard, "something outside of the tensor was written");
      }
    }
  }
  void zeros() {
    std::vector<float> const none(count, 0.0F);
    values state = filled(0, 0);
    values other = filled(0.5F, 0);
    for (std::uint64_t number = 1; number <= 500; ++number) {
      step<f32>(state, none, {.number = number});
      step<f32>(other, none, {.number = number});
    }
    laws_.expect(all_finite(state), "zero state and zero gradients end in NaN or infinity");
    laws_.expect(all_finite(other), "zero moments and zero gradients end in NaN or infinity");
    values started;
    for (std::size_t i = 0; i < arrays; ++i) started[i].assign(count, 0.0F);
    step<f32>(started, usual(70), {.number = 1});
    laws_.expect(all_finite(started), "the first step from zero state ends in NaN or infinity");
  }
  void learning_rate() {
    values state;
    for (std::size_t i = 0; i < arrays; ++i) state[i].assign(count, 0.0F);
    state[0] = usual(80);
    auto const before = state[0];
    step<f32>(state, usual(81), {.number = 1, .learning_rate_factor = 0});
    bool still = true;
    for (std::size_t e = 0; e < count; ++e) still = still && before[e] == state[0][e];
    laws_.expect(still, "a learning rate factor of 0 changes the master");
  }
  void late_steps() {
    values state = filled(0.5F, 0);
    for (std::uint64_t const number : {std::uint64_t{1} << 24U, (std::uint64_t{1} << 32U) + 1, ~std::uint64_t{0}}) {
      step<f32>(state, usual(number), {.number = number});
      laws_.expect(all_finite(state), "step " + std::to_string(number) + " ends in NaN or infinity");
    }
  }

  K const& kernel_;
  law_list laws_;
};

}  // namespace detail

/// Tries the laws of OptimizerKernel on `kernel` with its hyper-parameters. The broken laws; empty: it passes.
/// Errors  none of the kernel's: what it throws is a broken law.
template <OptimizerKernel K>
[[nodiscard]] std::vector<std::string> check_optimizer_kernel(K const& kernel = {}) {
  return detail::optimizer_kernel_check<K>{kernel}.run();
}

}  // namespace spillway::inline v0::testing
