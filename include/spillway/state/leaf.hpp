// SPDX-License-Identifier: Apache-2.0
/// The kinds of member that a checkpoint can hold by itself, and how each shows its bytes.
#pragma once

#include <spillway/core/bf16.hpp>
#include <spillway/core/bytes.hpp>
#include <spillway/core/config.hpp>
#include <spillway/core/dtype.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace spillway::inline v0 {

/// What a leaf is. Values are stable: they appear in schema hashes.
enum class leaf_kind : std::uint8_t {
  scalar = 0,  ///< bool, integer, enum, float, double, bf16
  string = 1,  ///< std::string: any bytes
  opaque = 2,  ///< std::vector<std::byte>
  tensor = 3,  ///< std::vector<T>, std::array<T, N>, tensor_leaf<T>
};
[[nodiscard]] constexpr std::string_view name_of(leaf_kind kind) noexcept {
  constexpr std::string_view names[] = {"scalar", "string", "bytes", "tensor"};
  return names[static_cast<std::size_t>(kind)];
}

/// A tensor that lives in memory of the user's. Its shape is part of the schema: restore fills it, never resizes it.
/// Pre: `values` has as many elements as `shape` says.
template <class T>
struct tensor_leaf {
  std::span<T> values;
  std::vector<std::uint64_t> shape;
};
template <class T>
tensor_leaf(std::span<T>, std::vector<std::uint64_t>) -> tensor_leaf<T>;

/// A member that is declared not saved: `visit("cache", transient(cache))`; in an aggregate, a member of type `transient<cache>`.
template <class T>
struct transient {
  T value{};
};
template <class T>
struct transient<T&> {
  T& value;
  constexpr explicit transient(T& member) noexcept : value(member) {}
};
template <class T>
transient(T&) -> transient<T&>;

/// What is known about a leaf without its value.
struct leaf_description {
  std::string name{};  ///< members' names from the outside in, joined by '/'
  leaf_kind kind = leaf_kind::scalar;
  dtype type = dtype::u8;              ///< of one element; u8 for strings and opaque bytes
  std::vector<std::uint64_t> shape{};  ///< empty for a scalar
  bool resizable = false;              ///< the length belongs to the value, not to the schema
  friend bool operator==(leaf_description const&, leaf_description const&) = default;
};

namespace detail {

template <class T>
inline constexpr bool is_transient = false;
template <class T>
inline constexpr bool is_transient<transient<T>> = true;

template <class T>
inline constexpr bool is_element =
    !std::is_const_v<T> && ((std::is_arithmetic_v<T> && !std::is_same_v<T, long double>) || std::is_same_v<T, bf16>);

template <class T>
[[nodiscard]] constexpr dtype element_dtype() noexcept {
  if constexpr (std::is_same_v<T, bool> || std::is_floating_point_v<T> || std::is_same_v<T, bf16>) {
    return dtype_of<T>;
  } else {
    // By size and sign: char, long long and wchar_t are distinct types with no dtype of their own.
    constexpr dtype with_sign[] = {dtype::i8, dtype::i16, dtype::i32, dtype::i64};
    constexpr dtype without[] = {dtype::u8, dtype::u16, dtype::u32, dtype::u64};
    constexpr std::size_t index = sizeof(T) == 1 ? 0 : sizeof(T) == 2 ? 1 : sizeof(T) == 4 ? 2 : 3;
    return std::is_signed_v<T> ? with_sign[index] : without[index];
  }
}

/// Copies elements; a bool from any byte, since another value than 0 or 1 in one is undefined behaviour.
template <class T>
void copy_elements(std::span<T> to, std::span<std::byte const> from) noexcept {
  if constexpr (std::is_same_v<T, bool>) {
    for (std::size_t i = 0; i < to.size(); ++i) to[i] = from[i] != std::byte{0};
  } else if (!from.empty()) {
    std::memcpy(to.data(), from.data(), from.size());
  }
}

/// For each leaf type: description (without name), bytes, prepare (may throw, changes no value), assign (after prepare).
template <class T>
struct leaf_access;

template <class T>
  requires(is_element<T>)
struct leaf_access<T> {
  static leaf_description describe(T const&) { return {.kind = leaf_kind::scalar, .type = element_dtype<T>()}; }
  static std::span<std::byte const> view(T const& value) noexcept {
    return std::as_bytes(std::span<T const, 1>{&value, 1});
  }
  static void prepare(T&, std::size_t) noexcept {}
  static void assign(T& value, std::span<std::byte const> from) noexcept {
    copy_elements(std::span<T>{&value, 1}, from);
  }
};

template <class T>
  requires(std::is_enum_v<T> && !std::is_same_v<T, std::byte>)
struct leaf_access<T> {
  using number = std::underlying_type_t<T>;
  static leaf_description describe(T const&) { return {.kind = leaf_kind::scalar, .type = element_dtype<number>()}; }
  static std::span<std::byte const> view(T const& value) noexcept {
    return std::as_bytes(std::span<T const, 1>{&value, 1});
  }
  static void prepare(T&, std::size_t) noexcept {}
  static void assign(T& value, std::span<std::byte const> from) noexcept {
    number raw{};
    copy_elements(std::span<number>{&raw, 1}, from);
    value = static_cast<T>(raw);
  }
};

/// Containers of contiguous elements that own their length.
template <class Container, leaf_kind Kind>
struct resizable_leaf {
  using element = typename Container::value_type;
  static leaf_description describe(Container const& value) {
    dtype const type = Kind == leaf_kind::tensor ? element_type() : dtype::u8;
    return {.kind = Kind, .type = type, .shape = {value.size()}, .resizable = true};
  }
  static std::span<std::byte const> view(Container const& value) noexcept {
    return std::as_bytes(std::span<element const>{value.data(), value.size()});
  }
  static void prepare(Container& value, std::size_t size) { value.reserve(size / sizeof(element)); }
  static void assign(Container& value, std::span<std::byte const> from) {
    value.resize(from.size() / sizeof(element));
    copy_elements(std::span<element>{value.data(), value.size()}, from);
  }

 private:
  static constexpr dtype element_type() noexcept {
    if constexpr (Kind == leaf_kind::tensor) return element_dtype<element>();
    return dtype::u8;
  }
};
template <>
struct leaf_access<std::string> : resizable_leaf<std::string, leaf_kind::string> {};
template <>
struct leaf_access<std::vector<std::byte>> : resizable_leaf<std::vector<std::byte>, leaf_kind::opaque> {};
template <class T>
  requires(is_element<T> && !std::is_same_v<T, bool>)  // std::vector<bool> has no bytes to show
struct leaf_access<std::vector<T>> : resizable_leaf<std::vector<T>, leaf_kind::tensor> {};

template <class T, std::size_t N>
  requires(is_element<T>)
struct leaf_access<std::array<T, N>> {
  static leaf_description describe(std::array<T, N> const&) {
    return {.kind = leaf_kind::tensor, .type = element_dtype<T>(), .shape = {N}};
  }
  static std::span<std::byte const> view(std::array<T, N> const& value) noexcept {
    return std::as_bytes(std::span{value});
  }
  static void prepare(std::array<T, N>&, std::size_t) noexcept {}
  static void assign(std::array<T, N>& value, std::span<std::byte const> from) noexcept {
    copy_elements(std::span<T>{value}, from);
  }
};

template <class T>
  requires(is_element<T>)
struct leaf_access<tensor_leaf<T>> {
  static leaf_description describe(tensor_leaf<T> const& value) {
    std::uint64_t count = 1;
    bool fits = true;
    for (std::uint64_t const extent : value.shape) fits = fits && checked_multiply(count, extent, count);
    SPILLWAY_EXPECTS(fits && count == value.values.size());
    return {.kind = leaf_kind::tensor, .type = element_dtype<T>(), .shape = value.shape};
  }
  static std::span<std::byte const> view(tensor_leaf<T> const& value) noexcept { return std::as_bytes(value.values); }
  static void prepare(tensor_leaf<T> const&, std::size_t) noexcept {}
  static void assign(tensor_leaf<T> const& value, std::span<std::byte const> from) noexcept {
    copy_elements(value.values, from);
  }
};

template <class T>
inline constexpr bool is_view = false;
template <class T>
inline constexpr bool is_view<tensor_leaf<T>> = true;

}  // namespace detail

/// A member that a checkpoint stores by itself.
template <class T>
concept StateLeaf = requires(T const& value) {
  detail::leaf_access<T>::describe(value);
};

}  // namespace spillway::inline v0
