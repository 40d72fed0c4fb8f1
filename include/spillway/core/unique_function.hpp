// SPDX-License-Identifier: Apache-2.0
/// A callable that is owned once: what a queue of tasks holds. Small ones are stored in place.
#pragma once

#include <spillway/core/config.hpp>

#include <concepts>
#include <cstddef>
#include <new>
#include <type_traits>
#include <utility>

namespace spillway::inline v0 {

template <class Signature>
class unique_function;

/// Move-only std::function. A callable of at most 64 bytes whose move can't throw lives inside and is not allocated; any other
/// lives on the heap. Movable only, so it holds callables that own things (a promise, a token, a file).
/// Threads  as any value: one thread at a time.
template <class R, class... Args>
class unique_function<R(Args...)> {
 public:
  static constexpr std::size_t inline_size = 64;

  unique_function() noexcept = default;

  /// Errors  what moving or copying the callable throws, and std::bad_alloc when it is not stored in place.
  template <class F>
    requires(!std::same_as<std::remove_cvref_t<F>, unique_function> && std::constructible_from<std::decay_t<F>, F> &&
             std::is_invocable_r_v<R, std::decay_t<F>&, Args...>)
  unique_function(
      F&& callable) {  // NOLINT(google-explicit-constructor,bugprone-forwarding-reference-overload): a lambda is a task
    using held = std::decay_t<F>;
    if constexpr (stored_in_place<held>) {
      ::new (static_cast<void*>(storage_)) held(std::forward<F>(callable));
    } else {
      ::new (static_cast<void*>(storage_)) held*(new held(std::forward<F>(callable)));
    }
    operations_ = &operations_for<held>;
  }

  unique_function(unique_function&& other) noexcept { take(other); }
  unique_function& operator=(unique_function&& other) noexcept {
    if (this != &other) {
      reset();
      take(other);
    }
    return *this;
  }
  unique_function(unique_function const&) = delete;
  unique_function& operator=(unique_function const&) = delete;
  ~unique_function() { reset(); }

  /// Pre      it holds a callable.
  /// Errors   what the callable throws.
  R operator()(Args... args) {
    SPILLWAY_EXPECTS(operations_ != nullptr);
    return operations_->call(storage_, std::forward<Args>(args)...);
  }
  [[nodiscard]] explicit operator bool() const noexcept { return operations_ != nullptr; }

  /// Destroys the callable, if there is one.
  void reset() noexcept {
    if (operations_ != nullptr) std::exchange(operations_, nullptr)->destroy(storage_);
  }

 private:
  struct operations {
    R (*call)(std::byte*, Args&&...);
    void (*move)(std::byte* from, std::byte* to) noexcept;  ///< ends the life of what was in `from`
    void (*destroy)(std::byte*) noexcept;
  };

  template <class F>
  static constexpr bool stored_in_place =
      sizeof(F) <= inline_size && alignof(F) <= alignof(std::max_align_t) && std::is_nothrow_move_constructible_v<F>;

  template <class F>
  [[nodiscard]] static F& held_in(std::byte* storage) noexcept {
    if constexpr (stored_in_place<F>) {
      return *std::launder(reinterpret_cast<F*>(storage));
    } else {
      return **std::launder(reinterpret_cast<F**>(storage));
    }
  }
  template <class F>
  static R call(std::byte* storage, Args&&... args) {
    if constexpr (std::is_void_v<R>) {
      static_cast<void>(held_in<F>(storage)(std::forward<Args>(args)...));
    } else {
      return held_in<F>(storage)(std::forward<Args>(args)...);
    }
  }
  template <class F>
  static void move(std::byte* from, std::byte* to) noexcept {
    if constexpr (stored_in_place<F>) {
      ::new (static_cast<void*>(to)) F(std::move(held_in<F>(from)));
      held_in<F>(from).~F();
    } else {
      ::new (static_cast<void*>(to)) F*(&held_in<F>(from));
    }
  }
  template <class F>
  static void destroy(std::byte* storage) noexcept {
    if constexpr (stored_in_place<F>) {
      held_in<F>(storage).~F();
    } else {
      delete &held_in<F>(storage);
    }
  }
  template <class F>
  static constexpr operations operations_for{&call<F>, &move<F>, &destroy<F>};

  void take(unique_function& other) noexcept {
    if (other.operations_ == nullptr) return;
    operations_ = std::exchange(other.operations_, nullptr);
    operations_->move(other.storage_, storage_);
  }

  alignas(std::max_align_t) std::byte storage_[inline_size];
  operations const* operations_ = nullptr;
};

}  // namespace spillway::inline v0
