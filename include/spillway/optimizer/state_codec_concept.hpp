// SPDX-License-Identifier: Apache-2.0
/// The policy seam "how a state array is stored". Requirements table: optimizer/README.md.
#pragma once

#include <spillway/core/dtype.hpp>
#include <spillway/core/f32.hpp>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace spillway::inline v0 {

/// Turns stored bytes into values of a register-wide type and back, one range of elements at a time.
/// `array` is the start of the array in the chunk; `element` counts from there, a multiple of V::width.
/// `parameter` is the narrow parameter as it was before the update, widened exactly; it is what the last store's value rounds to,
/// and is only meaningful when needs_parameter is true.
/// Semantics the compiler can't check: load gives back what store was given, rounded by a rule that its name states; the same
/// bits for every V; only the bytes of the elements at hand are touched.
template <class C>
concept StateCodec = requires(std::byte* array, std::byte const* from, std::uint64_t element, f32 value) {
  { C::name } -> std::convertible_to<std::string_view>;  // with a version when it is not plain: files name it
  { C::type } -> std::convertible_to<dtype>;             // of one stored element, u8 for opaque blocks
  { C::bytes_per_block } -> std::convertible_to<std::uint64_t>;
  { C::needs_parameter } -> std::convertible_to<bool>;
  { C::template load<f32>(from, element, value) } -> std::same_as<f32>;
  C::template store<f32>(array, element, value);
  requires noexcept(C::template load<f32>(from, element, value));
  requires noexcept(C::template store<f32>(array, element, value));
};

}  // namespace spillway::inline v0
