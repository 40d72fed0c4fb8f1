// SPDX-License-Identifier: Apache-2.0
/// The policy seam "the accelerator". Requirements table: device/README.md.
#pragma once

#include <spillway/core/bytes.hpp>

#include <concepts>
#include <cstddef>
#include <span>
#include <string>

namespace spillway::inline v0 {

/// Memory of a device: an address that only the device's tasks and copies may use. A plain value, owned by nobody.
struct device_block {
  std::byte* data = nullptr;
  bytes size{};
};

/// The stream of a device as its own API knows it (a cudaStream_t); null on a device that has none.
struct native_stream {
  void* handle = nullptr;
};

namespace detail {
/// Stands for any task: a callable that takes the device's task context.
struct any_task {
  template <class Context>
  void operator()(Context&) const noexcept {}
};
}  // namespace detail

/// An accelerator: memory under a budget, streams, events, copies both ways, tasks.
/// Semantics the compiler can't check: work of one stream runs in the order in which it was given, streams run beside each other;
/// copies return before they are done, and their memory must live until an event recorded after them is done; a failed task or
/// copy is thrown by every later wait of its stream, whose later work is dropped; events outlive their stream.
/// A task is called with the context: `context.address(p)` is the address that the task's own code may use for device address p
/// (the host-side stand-in's window; p itself on CUDA), `context.stream()` the native stream on which it enqueues.
template <class D>
concept Device = std::movable<D> &&
    requires(D& device, D const& view, typename D::stream& stream, typename D::event const& event, bytes n,
             device_block block, std::byte* address, std::span<std::byte> host, std::span<std::byte const> source) {
  requires std::movable<typename D::stream>;
  requires std::copyable<typename D::event>;
  requires std::default_initializable<typename D::event>;  // an event that is done
  { device.allocate(n) } -> std::same_as<device_block>;    // throws capacity_exceeded over the budget
  device.deallocate(block);
  requires noexcept(device.deallocate(block));
  { device.make_stream() } -> std::same_as<typename D::stream>;
  device.copy_to_device(stream, address, source);
  device.copy_to_host(stream, host, static_cast<std::byte const*>(address));
  device.submit(stream, detail::any_task{});
  { device.record(stream) } -> std::same_as<typename D::event>;
  device.wait(stream, event);  // later work of the stream starts after the event
  { event.done() } -> std::same_as<bool>;
  event.wait();                                // blocks the caller
  stream.wait();                               // blocks until all work of the stream is done
  { view.capacity() } -> std::same_as<bytes>;  // the budget
  { view.used() } -> std::same_as<bytes>;
  { view.peak() } -> std::same_as<bytes>;
  { view.name() } -> std::same_as<std::string>;  // says so when it is simulated
};

}  // namespace spillway::inline v0
