// SPDX-License-Identifier: Apache-2.0
/// One asynchronous movement of bytes, owned by whoever waits for it.
#pragma once

#include <concepts>
#include <system_error>

namespace spillway::inline v0 {

/// The token of one asynchronous operation.
/// Semantics the compiler can't check: the operation touches its bytes until poll() has returned true or wait() has returned or
/// thrown, never after; destroying a token waits; a moved-from token is done. poll() may be called any number of times.
template <class T>
concept Transfer = std::movable<T> && requires(T& token, T const& view) {
  { token.poll() } -> std::same_as<bool>;              // makes progress; true once done; never blocks
  token.wait();                                        // blocks; throws the whole spillway::error of a failure
  { view.status() } -> std::same_as<std::error_code>;  // once done: what wait() would throw; before: no error
  requires noexcept(token.poll());
  requires noexcept(view.status());
};

/// The token of an operation that was over before it returned.
struct completed {
  [[nodiscard]] static bool poll() noexcept { return true; }
  static void wait() noexcept {}
  [[nodiscard]] static std::error_code status() noexcept { return {}; }
};
static_assert(Transfer<completed>);

}  // namespace spillway::inline v0
