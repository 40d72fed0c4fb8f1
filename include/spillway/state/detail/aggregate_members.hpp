// SPDX-License-Identifier: Apache-2.0
/// The members of an aggregate, counted and bound without being told their names.
#pragma once

#include <cstddef>
#include <type_traits>
#include <utility>

namespace spillway::inline v0::detail {

struct any_member {
  std::size_t index;
  // Never defined: only asked whether it would convert.
  template <class T>
  operator T() const noexcept;  // NOLINT(google-explicit-constructor): that is what it is for
};

template <class T, std::size_t... I>
constexpr bool initialises(std::index_sequence<I...>) noexcept {
  return requires { T{any_member{I}...}; };
}

inline constexpr std::size_t most_members = 16;
inline constexpr std::size_t not_countable = most_members + 1;

/// How many members an aggregate has; not_countable when there are more than 16, or a member that no value converts to (a
/// reference, a C array).
template <class T>
[[nodiscard]] constexpr std::size_t count_members() noexcept {
  constexpr auto count = []<std::size_t... N>(std::index_sequence<N...>) {
    std::size_t most = not_countable;
    ((initialises<T>(std::make_index_sequence<N>{}) ? void(most = N) : void()), ...);
    return most;
  };
  return count(std::make_index_sequence<most_members + 2>{});
}

/// Calls `visit(i, member)` for each member in order.
template <class T, class Visit>
constexpr void for_each_member(T& object, Visit visit) {
  constexpr std::size_t count = count_members<std::remove_const_t<T>>();
  static_assert(count <= most_members);
  auto const each = [&visit](auto&... members) {
    std::size_t index = 0;
    (visit(index++, members), ...);
  };
  // Structured bindings cannot be a pack before C++26.
  if constexpr (count == 0) {
    static_cast<void>(object);
    each();
  } else if constexpr (count == 1) {
    auto& [a] = object;
    each(a);
  } else if constexpr (count == 2) {
    auto& [a, b] = object;
    each(a, b);
  } else if constexpr (count == 3) {
    auto& [a, b, c] = object;
    each(a, b, c);
  } else if constexpr (count == 4) {
    auto& [a, b, c, d] = object;
    each(a, b, c, d);
  } else if constexpr (count == 5) {
    auto& [a, b, c, d, e] = object;
    each(a, b, c, d, e);
  } else if constexpr (count == 6) {
    auto& [a, b, c, d, e, f] = object;
    each(a, b, c, d, e, f);
  } else if constexpr (count == 7) {
    auto& [a, b, c, d, e, f, g] = object;
    each(a, b, c, d, e, f, g);
  } else if constexpr (count == 8) {
    auto& [a, b, c, d, e, f, g, h] = object;
    each(a, b, c, d, e, f, g, h);
  } else if constexpr (count == 9) {
    auto& [a, b, c, d, e, f, g, h, i] = object;
    each(a, b, c, d, e, f, g, h, i);
  } else if constexpr (count == 10) {
    auto& [a, b, c, d, e, f, g, h, i, j] = object;
    each(a, b, c, d, e, f, g, h, i, j);
  } else if constexpr (count == 11) {
    auto& [a, b, c, d, e, f, g, h, i, j, k] = object;
    each(a, b, c, d, e, f, g, h, i, j, k);
  } else if constexpr (count == 12) {
    auto& [a, b, c, d, e, f, g, h, i, j, k, l] = object;
    each(a, b, c, d, e, f, g, h, i, j, k, l);
  } else if constexpr (count == 13) {
    auto& [a, b, c, d, e, f, g, h, i, j, k, l, m] = object;
    each(a, b, c, d, e, f, g, h, i, j, k, l, m);
  } else if constexpr (count == 14) {
    auto& [a, b, c, d, e, f, g, h, i, j, k, l, m, n] = object;
    each(a, b, c, d, e, f, g, h, i, j, k, l, m, n);
  } else if constexpr (count == 15) {
    auto& [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o] = object;
    each(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o);
  } else {
    auto& [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p] = object;
    each(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p);
  }
}

}  // namespace spillway::inline v0::detail
