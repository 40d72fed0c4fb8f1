// SPDX-License-Identifier: Apache-2.0
/// Proof at run time that this build computes the bits of the contract.
#pragma once

#include <spillway/core/error.hpp>
#include <spillway/core/lanes.hpp>
#include <spillway/optimizer/adamw_kernel.hpp>
#include <spillway/optimizer/optimizer_kernel_concept.hpp>

#include <array>
#include <bit>
#include <cstdint>
#include <string>

namespace spillway::inline v0 {

namespace detail {
/// What every build of a built-in kernel must give on the golden inputs; 0: no golden value, only f32 against lanes.
template <class K>
inline constexpr std::uint64_t golden_fingerprint = 0;
template <>
inline constexpr std::uint64_t golden_fingerprint<adamw_kernel> = 0x3a03a9c9675306f3U;
}  // namespace detail

/// FNV-1a over the bits that three steps of a default-constructed kernel leave for 64 elements: usual values, denormals, zeros,
/// values near overflow, and a NaN.
template <class V, ElementKernel K>
[[nodiscard]] std::uint64_t kernel_fingerprint() {
  constexpr std::size_t arrays = K::arrays.size();
  constexpr std::size_t count = 64;
  std::array<std::array<float, count>, arrays> state{};
  std::array<float, count> gradient{};
  std::uint32_t random = 12345;
  auto const next = [&random] { return random = random * 1664525U + 1013904223U; };
  auto const sample = [&next](std::size_t i) {
    std::uint32_t const bits = next();
    if (i % 16 == 13) return std::bit_cast<float>(bits & 0x807fffffU);                  // denormal
    if (i % 16 == 14) return std::bit_cast<float>((bits & 0x80ffffffU) | 0x7e000000U);  // near overflow
    if (i % 16 == 15) return 0.0F;
    return std::bit_cast<float>((bits & 0x83ffffffU) | 0x3c000000U);
  };
  std::uint64_t h = 0xcbf29ce484222325U;
  for (std::size_t i = 0; i < count; ++i) state[0][i] = sample(i);
  K const kernel{};
  for (std::uint64_t step = 1; step <= 3; ++step) {
    for (std::size_t i = 0; i < count; ++i) gradient[i] = sample(i);
    if (step == 3) gradient[5] = std::bit_cast<float>(0xffc12345U);
    auto const constants = kernel.prepare({.number = step * step, .learning_rate_factor = 0.75});
    for (std::size_t e = 0; e < count; e += V::width) {
      V values[arrays];
      for (std::size_t a = 0; a < arrays; ++a) values[a] = V::load(&state[a][e]);
      K::update(constants, V::load(&gradient[e]), values);
      for (std::size_t a = 0; a < arrays; ++a) values[a].store(&state[a][e]);
    }
    for (auto const& array : state) {
      for (float const v : array) h = (h ^ std::bit_cast<std::uint32_t>(v)) * 0x100000001b3U;
    }
  }
  return h;
}

/// Errors  errc::numerics_altered naming the kernel when this build computes other bits than others do, or other bits sixteen wide
///         than one wide.
template <ElementKernel K>
void check_numerics() {
  float_environment const exact;
  std::uint64_t const one = kernel_fingerprint<f32, K>();
  std::uint64_t const many = kernel_fingerprint<lanes, K>();
  std::uint64_t const golden = detail::golden_fingerprint<K>;
  if (one == many && (golden == 0 || golden == one)) return;
  throw error{errc::numerics_altered,
              {.where = "kernel " + std::string(K::name),
               .detail = "golden fingerprint " + std::to_string(golden) + ", one element wide " + std::to_string(one) +
                         ", sixteen wide " + std::to_string(many) + "; look for flags that change floating point"}};
}

}  // namespace spillway::inline v0
