// SPDX-License-Identifier: Apache-2.0
/// An accelerator simulated on the host: what runs when no GPU is there, and what tests use to see that code treats one rightly.
#pragma once

#include <spillway/core/bytes.hpp>
#include <spillway/core/config.hpp>
#include <spillway/core/error.hpp>
#include <spillway/device/detail/host_device_link.hpp>
#include <spillway/device/detail/host_device_memory.hpp>
#include <spillway/device/detail/host_stream.hpp>
#include <spillway/device/device_concept.hpp>

#include <chrono>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <system_error>
#include <thread>
#include <type_traits>
#include <utility>

namespace spillway::inline v0 {

struct host_device_options {
  bytes memory{};                    ///< the budget; above 0
  double link_bytes_per_second = 0;  ///< of each direction, shared by all streams; 0: as fast as memory; else 1 to 1e18
};

/// A simulated accelerator. Its memory has addresses of its own, on which host code faults (SIGSEGV); a task reaches the bytes
/// through its context. The budget is hard. Each stream is a thread; copies and tasks run on it, in order.
/// Streams and events may outlive the device. A moved-from device can only be destroyed or assigned to.
/// Threads  every member may be called from any thread, each stream used by one thread at a time.
class host_device {
  struct shared_state {
    explicit shared_state(host_device_options const& options)
        : memory(options.memory),
          to_device(options.link_bytes_per_second),
          to_host(options.link_bytes_per_second),
          link_bytes_per_second(options.link_bytes_per_second) {}
    detail::host_device_memory memory;
    detail::host_device_link to_device, to_host;
    double link_bytes_per_second;
  };
  struct worker;
  using queue = detail::host_stream_queue<worker>;

 public:
  /// What a task sees of the device; lives as long as the task runs.
  class context {
   public:
    /// Where the task's code finds the byte at device address p. Pre: p lies in a live block of this device.
    template <class Byte>
      requires std::same_as<Byte const, std::byte const>
    [[nodiscard]] Byte* address(Byte* p) const { return state_->memory.window(p, 1); }
    [[nodiscard]] static native_stream stream() noexcept { return {}; }

   private:
    friend host_device;
    explicit context(shared_state& state) noexcept : state_(&state) {}
    shared_state* state_;
  };

  /// A point in a stream's work: done when all work given to the stream before it is. A default one is done.
  /// Threads  any number of threads may use one event.
  class event {
   public:
    event() noexcept = default;
    [[nodiscard]] bool done() const noexcept { return queue_ == nullptr || queue_->done(number_); }
    /// Errors  device_failed, at every call, when work before this point failed or was dropped; its text is in about().detail.
    void wait() const {
      if (queue_ != nullptr) queue_->wait(number_);
    }

   private:
    friend host_device;
    event(std::shared_ptr<queue> work, std::uint64_t number) noexcept : queue_(std::move(work)), number_(number) {}
    std::shared_ptr<queue> queue_;
    std::uint64_t number_ = 0;
  };

  /// Work in order. Destroying one waits for its work. Moved from: only destroyed or assigned to.
  class stream {
   public:
    stream(stream&&) noexcept = default;
    stream& operator=(stream&& other) noexcept {
      if (this != &other) {
        finish();
        queue_ = std::move(other.queue_);
        thread_ = std::move(other.thread_);
      }
      return *this;
    }
    ~stream() { finish(); }

    /// Blocks until all work of the stream is done.
    /// Errors  device_failed, at every call, when any of it failed; the text of the failure is in about().detail.
    void wait() {
      SPILLWAY_EXPECTS(queue_ != nullptr);
      queue_->wait(queue_->given());
    }

   private:
    friend host_device;
    explicit stream(std::shared_ptr<shared_state> state) : queue_(std::make_shared<queue>()) {
      try {
        thread_ = std::thread{[work = queue_, state = std::move(state)] {
          worker w{context{*state}, *state, {}};
          work->run(w);
        }};
      } catch (std::system_error const& failed) {
        throw error{failed.code(), {.where = "host_device make_stream", .detail = "no thread for it"}};
      }
    }
    void finish() noexcept {
      if (!thread_.joinable()) return;
      queue_->close();
      thread_.join();
    }
    std::shared_ptr<queue> queue_;
    std::thread thread_;
  };

  /// Errors  invalid_option: no memory, or a rate out of range; what mmap says when the address space can't be had.
  explicit host_device(host_device_options options) {
    if (options.memory == bytes{})
      throw error{errc::invalid_option, {.where = "host_device", .detail = "its memory is 0 B"}};
    if (double const rate = options.link_bytes_per_second; !(rate == 0 || (rate >= 1 && rate <= 1e18))) {
      throw error{errc::invalid_option,
                  {.where = "host_device",
                   .detail = "link_bytes_per_second is neither 0 nor from 1 to 1e18: " + std::to_string(rate)}};
    }
    state_ = std::make_shared<shared_state>(options);
  }

  /// A block counts against the budget as a multiple of 256 B. Its first contents are unspecified. n = 0: no block.
  /// Errors   capacity_exceeded: wanted is n, got is what the budget has left (or the largest free piece, and it says so).
  [[nodiscard]] device_block allocate(bytes n) { return state().memory.allocate(n); }
  /// Pre      from allocate() of this device, not yet given back, and no work in flight uses it.
  void deallocate(device_block block) noexcept { state().memory.deallocate(block); }

  /// Errors   the system's when it has no thread left.
  [[nodiscard]] stream make_stream() {
    SPILLWAY_EXPECTS(state_ != nullptr);
    return stream{state_};
  }

  /// Pre      the destination lies in one live block; source lives and keeps its bytes until an event recorded after is done.
  /// Errors   none here: see stream::wait().
  void copy_to_device(stream& on, std::byte* to, std::span<std::byte const> from) {
    if (from.empty()) return;
    give(on, [to = state().memory.window(to, from.size()), from, asked = clock::now()](worker& w) {
      w.copy(w.state.to_device, to, from.data(), from.size(), asked);
    });
  }
  /// Pre      the source lies in one live block; `to` lives, and nobody reads it, until an event recorded after is done.
  /// Errors   none here: see stream::wait().
  void copy_to_host(stream& on, std::span<std::byte> to, std::byte const* from) {
    if (to.empty()) return;
    give(on, [to, from = static_cast<std::byte const*>(state().memory.window(from, to.size())),
              asked = clock::now()](worker& w) { w.copy(w.state.to_host, to.data(), from, to.size(), asked); });
  }
  /// `task(context&)` runs on the stream's thread, once the work before it is done, and is destroyed before the work counts as
  /// done. Dropped without a call when earlier work of the stream failed.
  /// Errors   none here: what the task throws comes back from stream::wait().
  /// Cost     no allocation for a task of at most 64 bytes.
  template <class Task>
    requires std::is_invocable_v < std::decay_t<Task>
  &, context& > void submit(stream& on, Task&& task) {
    give(on, [task = std::forward<Task>(task)](worker& w) mutable {
      static_cast<void>(task(w.seen));
      w.ready = clock::now();
    });
  }

  [[nodiscard]] event record(stream& of) {
    SPILLWAY_EXPECTS(of.queue_ != nullptr);
    return event{of.queue_, of.queue_->given()};
  }
  /// Work given to the stream from now on starts after the event; it is dropped when the event's own stream had failed by then.
  void wait(stream& waiting, event const& until) {
    if (until.queue_ == nullptr) return;
    give(waiting, [until](worker& w) {
      until.wait();
      w.ready = clock::now();
    });
  }

  [[nodiscard]] bytes capacity() const noexcept { return state().memory.capacity(); }
  [[nodiscard]] bytes used() const noexcept { return state().memory.used(); }
  [[nodiscard]] bytes peak() const noexcept { return state().memory.peak(); }
  /// "simulated accelerator (host_device, 64.0 MiB)", and the link's speed when it has one.
  [[nodiscard]] std::string name() const {
    std::string out = "simulated accelerator (host_device, " + to_string(capacity());
    if (double const rate = state().link_bytes_per_second; rate > 0) {
      out += ", link " + to_string(bytes{static_cast<std::uint64_t>(rate)}) + "/s";
    }
    return out + ")";
  }

 private:
  using clock = detail::host_device_link::clock;

  /// The thread of a stream, as its work sees it.
  struct worker {
    context seen;
    shared_state& state;
    clock::time_point ready;  ///< when the work before was over

    void copy(detail::host_device_link& link, std::byte* to, std::byte const* from, std::uint64_t size,
              clock::time_point asked) {
      if (ready < asked) ready = asked;
      link.copy(to, from, size, ready);
    }
  };

  [[nodiscard]] shared_state& state() const noexcept {
    SPILLWAY_EXPECTS(state_ != nullptr);
    return *state_;
  }
  void give(stream& on, queue::work item) {
    SPILLWAY_EXPECTS(state_ != nullptr && on.queue_ != nullptr);
    on.queue_->push(std::move(item));
  }

  std::shared_ptr<shared_state> state_;
};
static_assert(Device<host_device>);

}  // namespace spillway::inline v0
