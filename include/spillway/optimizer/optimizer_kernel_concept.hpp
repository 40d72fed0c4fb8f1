// SPDX-License-Identifier: Apache-2.0
/// The policy seam "the update rule". Requirements table: optimizer/README.md.
#pragma once

#include <spillway/core/f32.hpp>
#include <spillway/layout/chunk_plan.hpp>

#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace spillway::inline v0 {

/// What a rule needs to know about the step before it sees an element.
struct kernel_step {
  std::uint64_t number = 1;         ///< of this tensor: counts from 1
  double learning_rate_factor = 1;  ///< of the schedule; multiplies the kernel's own learning rate
};

namespace detail {
/// Stands for any value type: what an update rule may use of one.
struct any_value {
  explicit any_value(float x) noexcept;
  friend any_value operator+(any_value const& x, any_value const& y) noexcept;
  friend any_value operator-(any_value const& x, any_value const& y) noexcept;
  friend any_value operator*(any_value const& x, any_value const& y) noexcept;
  friend any_value operator/(any_value const& x, any_value const& y) noexcept;
  friend any_value sqrt(any_value const& x) noexcept;
  friend any_value max(any_value const& x, any_value const& y) noexcept;
};
}  // namespace detail

/// An update rule: hyper-parameters as plain members with defaults, state arrays by PyTorch's names, the fp32 master first.
/// Semantics the compiler can't check: prepare() is a pure function, computed in f64 and narrowed once; the update is a pure
/// function of (constants, gradient, state), uses V's operators only, and so gives the same bits for every V.
/// By element:  `template <class V> static void update(constants const&, V gradient, V (&state)[n])`, n = arrays.size().
/// By tensor:   `static void update_tensor(constants const&, std::span<std::uint64_t const> shape, std::span<float const> gradient,
///              std::array<std::span<float>, n> state)`; its arrays are stored as float32.
template <class K>
concept OptimizerKernel = std::semiregular<K> && requires(K const& kernel, kernel_step step) {
  { K::name } -> std::convertible_to<std::string_view>;
  { K::arrays.size() } -> std::convertible_to<std::size_t>;
  { K::arrays[0] } -> std::convertible_to<std::string_view>;
  { K::unit } -> std::convertible_to<granularity>;
  { K::passes } -> std::convertible_to<unsigned>;  // over the state of a chunk; 1 is what updaters run so far
  { kernel.prepare(step) } -> std::same_as<typename K::constants>;
};

/// A rule that looks at one element at a time.
template <class K>
concept ElementKernel = OptimizerKernel<K> && K::unit ==
                        granularity::element&& requires(typename K::constants const& c, f32 gradient,
                                                        f32 (&state)[K::arrays.size()], detail::any_value any,
                                                        detail::any_value (&any_state)[K::arrays.size()]) {
  K::update(c, gradient, state);
  K::update(c, any, any_state);  // it is a template
};

/// A rule that needs whole tensors and their shapes.
template <class K>
concept TensorKernel = OptimizerKernel<K> &&
                       K::unit == granularity::tensor&& requires(typename K::constants const& c,
                                                                 std::span<std::uint64_t const> shape,
                                                                 std::span<float const> gradient,
                                                                 std::array<std::span<float>, K::arrays.size()> state) {
  K::update_tensor(c, shape, gradient, state);
};

}  // namespace spillway::inline v0
