// SPDX-License-Identifier: Apache-2.0
/// Fork-join work on a Boost.Asio thread pool. Host only: no header that nvcc reads may include it.
#pragma once

#include <spillway/core/config.hpp>
#include <spillway/core/exact_arithmetic.hpp>

#include <sched.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <boost/asio/bind_allocator.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/thread_pool.hpp>
#include <cstddef>
#include <exception>
#include <memory>
#include <new>
#include <thread>

namespace spillway::inline v0 {

/// Processors that this process may run on: what taskset or a container left of the machine.
[[nodiscard]] inline unsigned usable_processors() noexcept {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (::sched_getaffinity(0, sizeof set, &set) == 0 && CPU_COUNT(&set) > 0)
    return static_cast<unsigned>(CPU_COUNT(&set));
  return std::max(1U, std::thread::hardware_concurrency());
}

namespace detail {
/// Room for one posted handler, so that posting allocates nothing.
struct handler_storage {
  alignas(std::max_align_t) std::array<std::byte, 256> bytes;
};
template <class T>
struct handler_allocator {
  using value_type = T;
  handler_storage* storage = nullptr;
  explicit handler_allocator(handler_storage* s) noexcept : storage(s) {}
  template <class U>
  handler_allocator(handler_allocator<U> const& other) noexcept
      : storage(other.storage) {}  // NOLINT(google-explicit-constructor)
  [[nodiscard]] T* allocate(std::size_t n) const {
    if (n * sizeof(T) > sizeof storage->bytes) throw std::bad_alloc{};
    return reinterpret_cast<T*>(storage->bytes.data());
  }
  void deallocate(T*, std::size_t) const noexcept {}
  template <class U>
  friend bool operator==(handler_allocator const& a, handler_allocator<U> const& b) noexcept {
    return a.storage == b.storage;
  }
};
}  // namespace detail

/// Threads that run the same body over many tasks. The caller works too, so a pool of one thread starts none.
/// Threads: run() may be called from several threads at once, not from inside a task. Not movable: share it by shared_ptr.
class thread_pool {
 public:
  static constexpr unsigned most_threads = 256;

  /// `threads` in all, the caller's included; 0: one for each usable processor.
  explicit thread_pool(unsigned threads = 0)
      : threads_(std::min(threads != 0 ? threads : usable_processors(), most_threads)), pool_(threads_ - 1) {}
  thread_pool(thread_pool const&) = delete;
  thread_pool& operator=(thread_pool const&) = delete;
  ~thread_pool() { pool_.join(); }

  [[nodiscard]] unsigned threads() const noexcept { return threads_; }

  /// Call body(task) once for each task in [0, tasks), several at a time; returns when all are done. Round to nearest and
  /// denormals are set around every task. No allocation.
  /// Errors  the first exception of a task, after all that had begun are done; tasks not yet begun are dropped.
  template <class Body>
  void run(std::size_t tasks, Body const& body) {
    work<Body> shared{body, tasks};
    std::size_t const helpers = std::min<std::size_t>(threads_ - 1, tasks > 0 ? tasks - 1 : 0);
    shared.helpers.store(helpers, std::memory_order_relaxed);
    std::array<detail::handler_storage, most_threads> storage;
    for (std::size_t i = 0; i < helpers; ++i) {
      boost::asio::post(
          pool_, boost::asio::bind_allocator(detail::handler_allocator<std::byte>{&storage[i]}, [&shared]() noexcept {
            shared.drain();
            if (shared.helpers.fetch_sub(1, std::memory_order_acq_rel) == 1) shared.helpers.notify_one();
          }));
    }
    shared.drain();
    for (std::size_t left = shared.helpers.load(std::memory_order_acquire); left != 0;
         left = shared.helpers.load(std::memory_order_acquire)) {
      shared.helpers.wait(left, std::memory_order_acquire);
    }
    if (shared.failure) std::rethrow_exception(shared.failure);
  }

 private:
  template <class Body>
  struct work {
    Body const& body;
    std::size_t tasks;
    std::atomic<std::size_t> next{0};
    std::atomic<std::size_t> helpers{0};
    std::atomic<bool> failed{false};
    std::exception_ptr failure{};

    void drain() noexcept {
      float_environment const exact;
      for (;;) {
        std::size_t const task = next.fetch_add(1, std::memory_order_relaxed);
        if (task >= tasks) return;
        try {
          body(task);
        } catch (...) {
          if (!failed.exchange(true)) failure = std::current_exception();
          next.store(tasks, std::memory_order_relaxed);
        }
      }
    }
  };
  unsigned threads_;
  boost::asio::thread_pool pool_;
};

}  // namespace spillway::inline v0
