// SPDX-License-Identifier: Apache-2.0
/// A user's tier, for tests: it encrypts what it stores, on a thread and with a Transfer of its own.
#pragma once

#include <spillway/core/bytes.hpp>
#include <spillway/io/huge_buffer.hpp>
#include <spillway/tier/memory_tier_concept.hpp>

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <system_error>
#include <thread>
#include <utility>

namespace test {

/// What a worker still has to do, and how it went.
class background_job {
 public:
  explicit background_job(std::function<void()> work) : work_(std::move(work)) {}
  void run() {
    std::exception_ptr failure;
    try {
      work_();
    } catch (...) {
      failure = std::current_exception();
    }
    std::lock_guard const lock(mutex_);
    failure_ = failure;
    done_ = true;
    finished_.notify_all();
  }
  [[nodiscard]] bool done() const {
    std::lock_guard const lock(mutex_);
    return done_;
  }
  void wait() const {
    std::unique_lock lock(mutex_);
    finished_.wait(lock, [this] { return done_; });
  }
  /// Once done.
  [[nodiscard]] std::exception_ptr failure() const {
    std::lock_guard const lock(mutex_);
    return done_ ? failure_ : nullptr;
  }

 private:
  std::function<void()> work_;
  mutable std::mutex mutex_;
  mutable std::condition_variable finished_;
  bool done_ = false;
  std::exception_ptr failure_;
};

/// The Transfer of transforming_tier: shares its job with the worker.
class job_transfer {
 public:
  explicit job_transfer(std::shared_ptr<background_job> job) noexcept : job_(std::move(job)) {}
  job_transfer(job_transfer&&) noexcept = default;
  job_transfer& operator=(job_transfer&& other) noexcept {
    if (this != &other) {
      if (job_) job_->wait();
      job_ = std::move(other.job_);
      thrown_ = other.thrown_;
    }
    return *this;
  }
  ~job_transfer() {
    if (job_) job_->wait();
  }
  [[nodiscard]] bool poll() noexcept { return !job_ || job_->done(); }
  void wait() {
    if (!job_ || thrown_) return;
    job_->wait();
    if (std::exception_ptr const failure = job_->failure()) {
      thrown_ = true;
      std::rethrow_exception(failure);
    }
  }
  [[nodiscard]] std::error_code status() const noexcept {
    if (!job_) return {};
    try {
      if (std::exception_ptr const failure = job_->failure()) std::rethrow_exception(failure);
    } catch (std::system_error const& failed) {
      return failed.code();
    } catch (...) {
      return std::make_error_code(std::errc::io_error);
    }
    return {};
  }

 private:
  std::shared_ptr<background_job> job_;
  bool thrown_ = false;
};

/// Stores every byte XORed with a keystream of its region and position in `Inner`.
template <spillway::MemoryTier Inner>
class transforming_tier {
 public:
  static constexpr spillway::tier_traits traits{
      .persistent = Inner::traits.persistent, .verbatim = false, .alignment = Inner::traits.alignment};

  explicit transforming_tier(Inner inner, std::uint64_t key = 0x5EEDU)
      : state_(std::make_unique<state>(std::move(inner), key)) {}

  [[nodiscard]] spillway::region allocate(spillway::bytes n) {
    std::lock_guard const lock(state_->inner_mutex);
    return state_->inner.allocate(n);
  }
  void deallocate(spillway::region r) noexcept {
    std::lock_guard const lock(state_->inner_mutex);
    state_->inner.deallocate(r);
  }
  [[nodiscard]] job_transfer read(spillway::region r, spillway::bytes offset, std::span<std::byte> to) {
    return state_->post([s = state_.get(), r, offset, to] {
      {
        std::lock_guard const lock(s->inner_mutex);
        s->inner.read(r, offset, to).wait();
      }
      s->apply_keystream(r, offset, to);
    });
  }
  [[nodiscard]] job_transfer write(spillway::region r, spillway::bytes offset, std::span<std::byte const> from) {
    return state_->post([s = state_.get(), r, offset, from] {
      spillway::huge_buffer const sealed{spillway::bytes{from.size()}};
      if (!from.empty()) std::memcpy(sealed.data(), from.data(), from.size());
      s->apply_keystream(r, offset, sealed.span());
      std::lock_guard const lock(s->inner_mutex);
      s->inner.write(r, offset, sealed.span()).wait();
    });
  }
  [[nodiscard]] job_transfer flush() {
    return state_->post([s = state_.get()] {
      std::lock_guard const lock(s->inner_mutex);
      s->inner.flush().wait();
    });
  }
  [[nodiscard]] spillway::bytes capacity() const noexcept { return state_->inner.capacity(); }
  /// What lies in the medium.
  [[nodiscard]] Inner& inner() noexcept { return state_->inner; }

 private:
  struct state {
    state(Inner i, std::uint64_t k) : inner(std::move(i)), key(k), worker([this] { serve(); }) {}
    state(state const&) = delete;
    state& operator=(state const&) = delete;
    ~state() {
      {
        std::lock_guard const lock(mutex);
        ending = true;
      }
      posted.notify_all();
      worker.join();
    }
    job_transfer post(std::function<void()> work) {
      auto job = std::make_shared<background_job>(std::move(work));
      {
        std::lock_guard const lock(mutex);
        jobs.push_back(job);
      }
      posted.notify_one();
      return job_transfer{std::move(job)};
    }
    void serve() {
      std::unique_lock lock(mutex);
      for (;;) {
        posted.wait(lock, [this] { return ending || !jobs.empty(); });
        if (jobs.empty()) return;
        auto const job = std::move(jobs.front());
        jobs.pop_front();
        lock.unlock();
        job->run();
        lock.lock();
      }
    }
    void apply_keystream(spillway::region r, spillway::bytes offset, std::span<std::byte> data) const noexcept {
      for (std::size_t i = 0; i < data.size(); ++i) {
        std::uint64_t const position = offset.count + i;
        std::uint64_t x = (key ^ r.id) + (position / 8 + 1) * 0x9E3779B97F4A7C15U;  // splitmix64
        x = (x ^ (x >> 30U)) * 0xBF58476D1CE4E5B9U;
        x = (x ^ (x >> 27U)) * 0x94D049BB133111EBU;
        data[i] ^= static_cast<std::byte>((x ^ (x >> 31U)) >> (8 * (position % 8)));
      }
    }

    Inner inner;
    std::mutex inner_mutex;  // the worker moves bytes while the owner allocates
    std::uint64_t key;
    std::mutex mutex;
    std::condition_variable posted;
    std::deque<std::shared_ptr<background_job>> jobs;
    bool ending = false;
    std::thread worker;  // last: it uses all of the above
  };
  std::unique_ptr<state> state_;
};

}  // namespace test
