// SPDX-License-Identifier: Apache-2.0
/// A type that declares what must be saved for the run to go on. Requirements table: state/README.md.
#pragma once

#include <spillway/state/detail/aggregate_members.hpp>
#include <spillway/state/leaf.hpp>

#include <concepts>
#include <cstddef>
#include <string>
#include <string_view>
#include <type_traits>

namespace spillway::inline v0 {

namespace detail {

/// Stands for any visitor.
struct state_probe {
  template <class T>
  void operator()(std::string_view, T&&) const noexcept {}
};

namespace state_hook {
void visit_state() = delete;  // so that only what argument-dependent lookup finds is a hook
template <class V, class T>
concept found = requires(V& visit, T& state) {
  visit_state(visit, state);
};
template <class V, class T>
constexpr void call(V& visit, T& state) {
  visit_state(visit, state);
}
}  // namespace state_hook

template <class T>
concept MemberVisited = requires(T& state, state_probe& visit) {
  state.visit_state(visit);
};
template <class T>
concept HookVisited = state_hook::found<state_probe, T>;
template <class T>
concept AggregateVisited = std::is_aggregate_v<T> && std::is_class_v<T> && count_members<T>()
<= most_members;

}  // namespace detail

/// A type with members to save: through a member function `visit_state(visit)`, else a function `visit_state(visit, state)` found
/// by its arguments, else as an aggregate of at most 16 members, called "0", "1", ...
/// Semantics the compiler can't check: visit("name", member) is called once a member, with the same names in the same order each
/// time; the members live as long as the state.
template <class T>
concept TrainingState =
    !StateLeaf<T> && (detail::MemberVisited<T> || detail::HookVisited<T> || detail::AggregateVisited<T>);

/// Calls visit(name, member) for each declared member.
/// Errors   what the visitor throws.
/// Threads  one at a time for one state.
template <TrainingState T, class Visitor>
void visit_members(T& state, Visitor& visit) {
  if constexpr (detail::MemberVisited<T>) {
    state.visit_state(visit);
  } else if constexpr (detail::HookVisited<T>) {
    detail::state_hook::call(visit, state);
  } else {
    detail::for_each_member(state, [&visit](std::size_t index, auto& member) { visit(std::to_string(index), member); });
  }
}

}  // namespace spillway::inline v0
