// SPDX-License-Identifier: Apache-2.0
/// Any Transfer in place: tiers of one stack have tokens of different types.
#pragma once

#include <spillway/core/transfer_concept.hpp>

#include <cstddef>
#include <new>
#include <system_error>
#include <utility>

namespace spillway::inline v0::detail {

/// Owns one token; done when empty. No allocation.
class any_transfer {
 public:
  any_transfer() noexcept = default;
  template <class T>
    requires(!std::same_as<T, any_transfer> && Transfer<T>)  // in this order, or the question asks itself
  explicit any_transfer(T token) : calls_(&calls_of<T>) {
    static_assert(sizeof(T) <= sizeof storage_ && alignof(T) <= alignof(std::max_align_t),
                  "a transfer token of at most 64 bytes");
    static_assert(std::is_nothrow_move_constructible_v<T>, "moving a transfer token must not throw");
    ::new (static_cast<void*>(storage_)) T(std::move(token));
  }
  any_transfer(any_transfer&& other) noexcept { take(other); }
  any_transfer& operator=(any_transfer&& other) noexcept {
    if (this != &other) {
      reset();
      take(other);
    }
    return *this;
  }
  ~any_transfer() { reset(); }

  [[nodiscard]] bool poll() noexcept { return calls_ == nullptr || calls_->poll(storage_); }
  void wait() {
    if (calls_ != nullptr) calls_->wait(storage_);
  }
  [[nodiscard]] std::error_code status() const noexcept {
    return calls_ == nullptr ? std::error_code{} : calls_->status(storage_);
  }

 private:
  struct calls {
    bool (*poll)(void*) noexcept;
    void (*wait)(void*);
    std::error_code (*status)(void const*) noexcept;
    void (*move)(void* to, void* from) noexcept;
    void (*destroy)(void*) noexcept;
  };
  template <class T>
  static constexpr calls calls_of{
      [](void* p) noexcept { return static_cast<T*>(p)->poll(); }, [](void* p) { static_cast<T*>(p)->wait(); },
      [](void const* p) noexcept { return static_cast<T const*>(p)->status(); },
      [](void* to, void* from) noexcept { ::new (to) T(std::move(*static_cast<T*>(from))); },
      [](void* p) noexcept { static_cast<T*>(p)->~T(); }};

  void take(any_transfer& other) noexcept {
    if (other.calls_ == nullptr) return;
    other.calls_->move(storage_, other.storage_);
    calls_ = other.calls_;
    other.reset();
  }
  void reset() noexcept {
    if (calls_ != nullptr) std::exchange(calls_, nullptr)->destroy(storage_);
  }
  alignas(std::max_align_t) std::byte storage_[64];
  calls const* calls_ = nullptr;
};
static_assert(Transfer<any_transfer>);

}  // namespace spillway::inline v0::detail
