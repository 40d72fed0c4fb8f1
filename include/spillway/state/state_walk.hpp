// SPDX-License-Identifier: Apache-2.0
/// Goes through a training state to its leaves, and refuses to compile when a member is not decided.
#pragma once

#include <spillway/core/error.hpp>
#include <spillway/state/leaf.hpp>
#include <spillway/state/training_state_concept.hpp>

#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

namespace spillway::inline v0 {

namespace detail {
template <class T>
inline constexpr bool state_member_is_decided = false;

/// The visitor that a state sees. `Handler` is called with (std::string name, leaf&), and may take other types of member too:
/// what it takes is not looked into.
template <class Handler>
class state_walker {
 public:
  state_walker(Handler& handler, std::string prefix) : handler_(&handler), prefix_(std::move(prefix)) {}

  template <class T>
  void operator()(std::string_view name, T&& member) const {
    using member_type = std::remove_cvref_t<T>;
    if constexpr (is_transient<member_type>) {
      static_cast<void>(member);
    } else {
      static_assert(std::is_lvalue_reference_v<T> || is_view<member_type>,
                    "visit_state passed a temporary: visit(\"name\", member) needs the member itself");
      static_assert(!std::is_const_v<std::remove_reference_t<T>> || is_view<member_type>,
                    "visit_state passed a const member: restore could not fill it; declare visit_state without const");
      if (name.empty() || name.find('/') != std::string_view::npos) {
        throw error{errc::invalid_option,
                    {.where = "visit_state",
                     .detail = "member \"" + prefix_ + std::string(name) +
                               "\": a name is not empty and has no '/', which joins names"}};
      }
      std::string full = prefix_ + std::string(name);
      if constexpr (requires { (*handler_)(std::string{}, member); }) {
        (*handler_)(std::move(full), member);
      } else if constexpr (TrainingState<member_type>) {
        state_walker const inner{*handler_, full + '/'};
        visit_members(member, inner);
      } else {
        static_assert(
            state_member_is_decided<member_type>,
            "this member of a training state is neither saved nor declared transient: make it a scalar, std::string, "
            "std::vector, std::array or tensor_leaf of numbers, std::vector<std::byte>, a type with visit_state (or an "
            "aggregate of at most 16 such members), or write transient(member)");
      }
    }
  }

 private:
  Handler* handler_;
  std::string prefix_;
};
}  // namespace detail

/// Calls handler(name, leaf) for each leaf of `state`, in declaration order, nested names joined by '/'.
/// Errors   errc::invalid_option for a name that is empty or has a '/'; what the handler throws.
/// Threads  one at a time for one state.
template <TrainingState State, class Handler>
void walk_state(State& state, Handler& handler, std::string prefix = {}) {
  detail::state_walker<Handler> const walker{handler, std::move(prefix)};
  visit_members(state, walker);
}

}  // namespace spillway::inline v0
