// SPDX-License-Identifier: Apache-2.0
/// A queue of work and the thread that does it, in order: the stream of the simulated accelerator.
#pragma once

#include <spillway/core/error.hpp>
#include <spillway/core/unique_function.hpp>

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

namespace spillway::inline v0::detail {

/// What the giver of work, the thread that does it and every event of the stream share. `Worker` is what work gets to see of the
/// thread that runs it.
/// Threads  every member may be called from any thread; run() from one.
template <class Worker>
class host_stream_queue {
 public:
  using work = unique_function<void(Worker&)>;

  host_stream_queue() : ring_(64) {}

  /// Cost  no allocation, unless more work waits than ever before in this stream (twice the room, then).
  void push(work item) {
    {
      std::lock_guard const lock{mutex_};
      if (given_ - taken_ == ring_.size()) grow();
      ring_[given_ % ring_.size()] = std::move(item);
      ++given_;
    }
    work_given_.notify_one();
  }

  /// The number of the last piece of work given; pieces count from 1.
  [[nodiscard]] std::uint64_t given() const {
    std::lock_guard const lock{mutex_};
    return given_;
  }
  [[nodiscard]] bool done(std::uint64_t number) const noexcept {
    return done_.load(std::memory_order_acquire) >= number;
  }

  /// Blocks until the pieces up to `number` are done.
  /// Errors  device_failed when one of them failed or was dropped because an earlier one did.
  void wait(std::uint64_t number) const {
    std::unique_lock lock{mutex_};
    work_done_.wait(lock, [&] { return done(number); });
    if (failed_ != 0 && failed_ <= number) throw error{errc::device_failed, failure_};
  }

  /// Does the work, until close() and nothing is left.
  void run(Worker& worker) {
    std::unique_lock lock{mutex_};
    for (;;) {
      work_given_.wait(lock, [&] { return closed_ || taken_ != given_; });
      if (taken_ == given_) return;
      work item = std::move(ring_[taken_ % ring_.size()]);
      ++taken_;
      bool const dropped = failed_ != 0;
      lock.unlock();
      error::context failure;
      bool const failed = !dropped && !run_one(item, worker, failure);
      item.reset();  // what the work owned is gone before anyone hears that it is done
      lock.lock();
      if (failed) {
        failed_ = taken_;
        failure_ = std::move(failure);
      }
      done_.store(taken_, std::memory_order_release);
      work_done_.notify_all();
    }
  }
  void close() {
    {
      std::lock_guard const lock{mutex_};
      closed_ = true;
    }
    work_given_.notify_one();
  }

 private:
  [[nodiscard]] static bool run_one(work& item, Worker& worker, error::context& failure) noexcept {
    try {
      item(worker);
      return true;
    } catch (error const& thrown) {
      failure = thrown.code() == errc::device_failed ? thrown.about() : named(thrown.what());
    } catch (std::exception const& thrown) {
      failure = named(thrown.what());
    } catch (...) {
      failure = named("something that is not a std::exception");
    }
    return false;
  }
  [[nodiscard]] static error::context named(char const* what) { return {.where = "host_device task", .detail = what}; }

  void grow() {
    std::vector<work> larger(ring_.size() * 2);
    for (std::uint64_t i = taken_; i != given_; ++i) larger[i % larger.size()] = std::move(ring_[i % ring_.size()]);
    ring_ = std::move(larger);
  }

  std::mutex mutable mutex_;
  std::condition_variable work_given_;
  std::condition_variable mutable work_done_;
  std::vector<work> ring_;
  std::uint64_t given_ = 0, taken_ = 0;
  std::atomic<std::uint64_t> done_{0};
  std::uint64_t failed_ = 0;  // the number of the piece that failed
  error::context failure_;
  bool closed_ = false;
};

}  // namespace spillway::inline v0::detail
