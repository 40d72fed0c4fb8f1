// SPDX-License-Identifier: Apache-2.0
/// The least that models OptimizerKernel by element and by tensor, and a near miss per requirement.
#pragma once

#include <spillway/core/f32.hpp>
#include <spillway/optimizer/optimizer_kernel_concept.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

namespace spillway::inline v0::testing {

/// What an update rule may ask of its value type, and nothing more: instantiate an update() with it.
class minimal_value {
 public:
  explicit minimal_value(float x) noexcept : value_(x) {}
  friend minimal_value operator+(minimal_value const& x, minimal_value const& y) noexcept {
    return {x.value_ + y.value_};
  }
  friend minimal_value operator-(minimal_value const& x, minimal_value const& y) noexcept {
    return {x.value_ - y.value_};
  }
  friend minimal_value operator*(minimal_value const& x, minimal_value const& y) noexcept {
    return {x.value_ * y.value_};
  }
  friend minimal_value operator/(minimal_value const& x, minimal_value const& y) noexcept {
    return {x.value_ / y.value_};
  }
  friend minimal_value sqrt(minimal_value const& x) noexcept { return {sqrt(x.value_)}; }
  friend minimal_value max(minimal_value const& x, minimal_value const& y) noexcept {
    return {max(x.value_, y.value_)};
  }

 private:
  minimal_value(f32 x) noexcept : value_(x) {}  // NOLINT(google-explicit-constructor): private
  f32 value_;
};

struct minimal_kernel {
  static constexpr char const* name = "minimal";
  static constexpr std::array<char const*, 1> arrays{"master"};
  static constexpr granularity unit = granularity::element;
  static constexpr int passes = 1;
  struct constants {};
  constants prepare(kernel_step) const { return {}; }  // NOLINT(readability-convert-member-functions-to-static)
  template <class V>
  static void update(constants const&, V gradient, V (&state)[1]) {
    state[0] = state[0] - gradient;
  }
};
struct minimal_tensor_kernel {
  static constexpr char const* name = "minimal by tensor";
  static constexpr std::array<char const*, 1> arrays{"master"};
  static constexpr granularity unit = granularity::tensor;
  static constexpr int passes = 1;
  struct constants {};
  constants prepare(kernel_step) const { return {}; }  // NOLINT(readability-convert-member-functions-to-static)
  static void update_tensor(constants const&, std::span<std::uint64_t const>, std::span<float const> gradient,
                            std::array<std::span<float>, 1> state) {
    for (std::size_t i = 0; i < gradient.size(); ++i) (f32{state[0][i]} - f32{gradient[i]}).store(&state[0][i]);
  }
};

namespace near_miss {

struct kernel_not_copyable : minimal_kernel {
  std::unique_ptr<int> owned;
};
struct kernel_without_defaults : minimal_kernel {
  explicit kernel_without_defaults(double) noexcept {}
};
struct kernel_named_by_number : minimal_kernel {
  static constexpr int name = 7;
};
struct kernel_without_arrays : minimal_kernel {
  using arrays = void;
};
struct kernel_arrays_without_size : minimal_kernel {
  static constexpr char const* arrays[1] = {"master"};
};
struct kernel_arrays_by_number : minimal_kernel {
  static constexpr std::array<int, 1> arrays{0};
};
struct kernel_without_unit : minimal_kernel {
  using unit = void;
};
struct kernel_without_passes : minimal_kernel {
  using passes = void;
};
struct kernel_that_prepares_only_when_mutable : minimal_kernel {
  constants prepare(kernel_step) { return {}; }
};
struct kernel_that_prepares_other_constants : minimal_kernel {
  [[nodiscard]] int prepare(kernel_step) const { return 0; }
};
// OptimizerKernels that are not ElementKernels.
struct kernel_that_updates_f32_only : minimal_kernel {
  static void update(constants const&, f32 gradient, f32 (&state)[1]) { state[0] = state[0] - gradient; }
};
struct kernel_that_updates_another_count : minimal_kernel {
  template <class V>
  static void update(constants const&, V gradient, V (&state)[2]) {
    state[0] = state[0] - gradient;
  }
};
struct kernel_that_says_tensor : minimal_kernel {
  static constexpr granularity unit = granularity::tensor;
};
// OptimizerKernels that are not TensorKernels.
struct tensor_kernel_that_ignores_shapes : minimal_tensor_kernel {
  static void update_tensor(constants const&, std::span<float const>, std::array<std::span<float>, 1>) {}
};
struct tensor_kernel_that_changes_gradients : minimal_tensor_kernel {
  static void update_tensor(constants const&, std::span<std::uint64_t const>, std::span<float>,
                            std::array<std::span<float>, 1>) {}
};
struct tensor_kernel_that_says_element : minimal_tensor_kernel {
  static constexpr granularity unit = granularity::element;
};

}  // namespace near_miss

}  // namespace spillway::inline v0::testing
