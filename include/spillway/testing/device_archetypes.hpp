// SPDX-License-Identifier: Apache-2.0
/// The least that a Device may offer, and a near miss for each requirement.
#pragma once

#include <spillway/core/bytes.hpp>
#include <spillway/device/device_concept.hpp>

#include <cstddef>
#include <span>
#include <string>

namespace spillway::inline v0::testing {

/// No copy, no default construction, a stream that only moves, tasks called with a context that offers nothing more.
struct minimal_device {
  struct context {
    [[nodiscard]] static std::byte* address(std::byte* p) noexcept { return p; }
    [[nodiscard]] static std::byte const* address(std::byte const* p) noexcept { return p; }
    [[nodiscard]] static native_stream stream() noexcept { return {}; }
  };
  struct stream {
    stream(stream&&) = default;
    stream& operator=(stream&&) = default;
    ~stream() = default;
    void wait() {}

   private:
    friend minimal_device;
    stream() = default;
  };
  struct event {
    [[nodiscard]] static bool done() { return true; }
    static void wait() {}
  };

  explicit minimal_device(int) {}
  minimal_device(minimal_device&&) = default;
  minimal_device& operator=(minimal_device&&) = default;
  ~minimal_device() = default;

  device_block allocate(bytes) { return {}; }
  void deallocate(device_block) noexcept {}
  stream make_stream() { return {}; }
  void copy_to_device(stream&, std::byte*, std::span<std::byte const>) {}
  void copy_to_host(stream&, std::span<std::byte>, std::byte const*) {}
  template <class Task>
  void submit(stream&, Task&& task) {
    context seen;
    static_cast<void>(task(seen));
  }
  event record(stream&) { return {}; }
  void wait(stream&, event const&) {}
  [[nodiscard]] static bytes capacity() { return {}; }
  [[nodiscard]] static bytes used() { return {}; }
  [[nodiscard]] static bytes peak() { return {}; }
  [[nodiscard]] static std::string name() { return "minimal"; }
};

/// Each lacks one thing. They stay usable as a device otherwise, so only that one thing makes them miss.
namespace near_miss {
struct device_that_cannot_move : minimal_device {
  device_that_cannot_move() : minimal_device(0) {}
  device_that_cannot_move(device_that_cannot_move&&) = delete;
};
struct device_whose_stream_cannot_move : minimal_device {
  struct stream {
    stream(stream&&) = delete;
    void wait() {}
  };
  stream make_stream();
  void copy_to_device(stream&, std::byte*, std::span<std::byte const>) {}
  void copy_to_host(stream&, std::span<std::byte>, std::byte const*) {}
  template <class Task>
  void submit(stream&, Task&&) {}
  event record(stream&) { return {}; }
  void wait(stream&, event const&) {}
};
struct device_whose_stream_cannot_wait : minimal_device {
  struct stream {};
  stream make_stream() { return {}; }
  void copy_to_device(stream&, std::byte*, std::span<std::byte const>) {}
  void copy_to_host(stream&, std::span<std::byte>, std::byte const*) {}
  template <class Task>
  void submit(stream&, Task&&) {}
  event record(stream&) { return {}; }
  void wait(stream&, event const&) {}
};
struct device_whose_event_cannot_be_copied : minimal_device {
  struct event : minimal_device::event {
    event() = default;
    event(event&&) = default;
    event& operator=(event&&) = default;
  };
  event record(stream&) { return {}; }
};
struct device_whose_event_needs_a_stream : minimal_device {
  struct event : minimal_device::event {
    explicit event(stream&) {}
  };
  event record(stream& of) { return event{of}; }
};
struct device_whose_event_cannot_wait : minimal_device {
  struct event {
    static bool done() { return true; }
  };
  event record(stream&) { return {}; }
  void wait(stream&, event const&) {}
};
struct device_whose_event_waits_only_when_mutable : minimal_device {
  struct event {
    static bool done() { return true; }
    void wait() {}
  };
  event record(stream&) { return {}; }
  void wait(stream&, event const&) {}
};
struct device_whose_event_has_no_done : minimal_device {
  struct event {
    static void wait() {}
  };
  event record(stream&) { return {}; }
  void wait(stream&, event const&) {}
};
struct device_that_allocates_a_pointer : minimal_device {
  std::byte* allocate(bytes) { return nullptr; }
};
struct device_that_cannot_deallocate : minimal_device {
  void deallocate() noexcept {}
};
struct device_whose_deallocate_may_throw : minimal_device {
  void deallocate(device_block) {}
};
struct device_without_streams : minimal_device {
  void make_stream() {}
};
struct device_that_copies_only_to_the_host : minimal_device {
  void copy_to_device() {}
};
struct device_that_copies_only_to_the_device : minimal_device {
  void copy_to_host() {}
};
struct device_that_takes_only_function_pointers : minimal_device {
  void submit(stream&, void (*)()) {}
};
struct device_that_records_nothing : minimal_device {
  void record(stream&) {}
};
struct device_whose_streams_cannot_wait_for_events : minimal_device {
  void wait(stream&) {}
};
struct device_whose_capacity_is_a_number : minimal_device {
  static std::size_t capacity() { return 0; }
};
struct device_whose_capacity_needs_a_mutable_device : minimal_device {
  bytes capacity() { return {}; }
};
struct device_that_does_not_count_used : minimal_device {
  void used() const {}
};
struct device_that_does_not_count_the_peak : minimal_device {
  void peak() const {}
};
struct device_without_a_name : minimal_device {
  void name() const {}
};
}  // namespace near_miss

}  // namespace spillway::inline v0::testing
