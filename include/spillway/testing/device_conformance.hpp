// SPDX-License-Identifier: Apache-2.0
/// What a Device promises beyond what the compiler checks, as a list of broken laws. For users' own devices too.
#pragma once

#include <spillway/core/bytes.hpp>
#include <spillway/core/error.hpp>
#include <spillway/device/device_concept.hpp>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace spillway::inline v0::testing {

namespace detail {

template <Device D>
class device_check {
 public:
  explicit device_check(D& device) : device_(device) {}

  [[nodiscard]] std::vector<std::string> run() {
    law("blocks", [this] { blocks(); });
    law("budget", [this] { budget(); });
    law("copies", [this] { copies(); });
    law("events", [this] { events(); });
    law("order across streams", [this] { order_across_streams(); });
    law("tasks", [this] { tasks(); });
    law("failure", [this] { failure(); });
    law("moves", [this] { moves(); });
    return std::move(broken_);
  }

 private:
  static constexpr std::size_t size = 64U << 10U;

  struct held_block {
    held_block(D& of, bytes n) : device(of), block(of.allocate(n)) {}
    held_block(held_block const&) = delete;
    held_block& operator=(held_block const&) = delete;
    ~held_block() { device.deallocate(block); }
    D& device;
    device_block block;
  };

  template <class Law>
  void law(std::string name, Law check) {
    name_ = std::move(name);
    try {
      check();
    } catch (std::exception const& thrown) {
      expect(false, std::string("threw: ") + thrown.what());
    }
  }
  void expect(bool holds, std::string const& what) {
    if (!holds) broken_.push_back(name_ + ": " + what);
  }
  template <class Wait>
  [[nodiscard]] static std::optional<error> thrown_by(Wait wait) {
    try {
      wait();
    } catch (error const& thrown) {
      return thrown;
    }
    return std::nullopt;
  }
  [[nodiscard]] static std::vector<std::byte> pattern(unsigned seed) {
    std::vector<std::byte> out(size);
    std::uint32_t state = seed * 2654435761U + 1U;
    for (auto& b : out) b = static_cast<std::byte>((state = state * 1664525U + 1013904223U) >> 24U);
    return out;
  }

  void blocks() {
    bytes const before = device_.used();
    {
      held_block const a{device_, bytes{size}};
      held_block const b{device_, bytes{1}};
      held_block const none{device_, bytes{}};
      expect(a.block.size == bytes{size} && b.block.size == bytes{1}, "a block has another size than asked");
      expect(a.block.data != nullptr && b.block.data != nullptr, "a block has no address");
      auto const first = reinterpret_cast<std::uintptr_t>(a.block.data);
      auto const second = reinterpret_cast<std::uintptr_t>(b.block.data);
      expect(first + size <= second || second + 1 <= first, "live blocks overlap");
      expect(first % 256 == 0 && second % 256 == 0, "a block is not aligned to 256 B");
      expect(device_.used() >= before + bytes{size} + bytes{1}, "used() misses live blocks");
      expect(device_.peak() >= device_.used(), "peak() is below used()");
    }
    expect(device_.used() == before, "used() does not fall to where it was when blocks are given back");
    held_block const later{device_, bytes{1}};
    expect(device_.peak() >= before + bytes{size}, "peak() forgets");
    expect(!device_.name().empty(), "name() is empty");
  }

  void budget() {
    bytes const before = device_.used();
    bytes const left = device_.capacity() - before;
    if (left == bytes{std::numeric_limits<std::uint64_t>::max()}) return;
    bytes const too_much = left + bytes{1};
    auto const refused = thrown_by([&] { device_.deallocate(device_.allocate(too_much)); });
    expect(refused && refused->code() == errc::capacity_exceeded,
           "a block over the budget is not refused as capacity_exceeded");
    expect(refused && refused->about().wanted == too_much && refused->about().got <= left,
           "the refusal names other numbers");
    expect(device_.used() == before, "a refused block counts");
    held_block const still_works{device_, bytes{size}};
    expect(still_works.block.data != nullptr, "no block can be had after a refusal");
  }

  void copies() {
    held_block const block{device_, bytes{size}};
    auto const first = pattern(1), second = pattern(2);
    std::vector<std::byte> back(size), part(100);
    auto stream = device_.make_stream();  // last: whatever is broken, its work is over before the memory goes
    for (int i = 0; i < 8; ++i) device_.copy_to_device(stream, block.block.data, first);
    device_.copy_to_device(stream, block.block.data, second);
    device_.copy_to_host(stream, back, block.block.data);
    device_.copy_to_device(stream, block.block.data, first);
    device_.copy_to_host(stream, part, block.block.data + 333);
    device_.copy_to_device(stream, block.block.data, std::span<std::byte const>{});
    stream.wait();
    expect(back == second, "copies of one stream do not run in the order in which they were given");
    expect(std::equal(part.begin(), part.end(), first.begin() + 333), "a copy from within a block has other bytes");
  }

  void events() {
    using event = typename D::event;
    expect(event{}.done(), "a default event is not done");
    event{}.wait();
    held_block const block{device_, bytes{size}};
    auto const source = pattern(3);
    std::vector<std::byte> back(size);
    event last;
    {
      auto stream = device_.make_stream();
      device_.record(stream).wait();
      device_.copy_to_device(stream, block.block.data, source);
      device_.copy_to_host(stream, back, block.block.data);
      last = device_.record(stream);
      event const copy = last;
      copy.wait();
      expect(back == source, "event.wait() returned before the work before it was done");
      expect(copy.done() && last.done(), "an event is not done after wait()");
      device_.copy_to_host(stream, back, block.block.data);
      last = device_.record(stream);
    }
    last.wait();
    expect(last.done(), "an event that outlives its stream is not done");
  }

  void order_across_streams() {
    held_block const block{device_, bytes{size}};
    auto const stale = pattern(1000);
    std::vector<std::vector<std::byte>> sources;
    for (unsigned round = 0; round < 50; ++round) sources.push_back(pattern(round));
    std::vector<std::byte> back(size);
    auto one = device_.make_stream();
    auto two = device_.make_stream();
    device_.wait(two, typename D::event{});
    for (unsigned round = 0; round < 50; ++round) {
      auto const& source = sources[round];
      auto& producer = round % 2 == 0 ? one : two;
      auto& consumer = round % 2 == 0 ? two : one;
      for (int i = 0; i < 8; ++i) device_.copy_to_device(producer, block.block.data, stale);
      device_.copy_to_device(producer, block.block.data, source);
      device_.wait(consumer, device_.record(producer));
      device_.copy_to_host(consumer, back, block.block.data);
      device_.record(consumer).wait();
      if (back != source) return expect(false, "work after wait(stream, event) ran before the event");
    }
  }

  void tasks() {
    held_block const block{device_, bytes{size}};
    std::byte* const address = block.block.data;
    std::atomic<int> calls{0};
    std::atomic<bool> in_order{true};
    auto stream = device_.make_stream();
    for (int i = 0; i < 100; ++i) {
      device_.submit(stream, [&calls, &in_order, address, i](auto& context) {
        if (calls.fetch_add(1) != i || context.address(address) == nullptr) in_order = false;
        static_cast<void>(native_stream{context.stream()});
      });
    }
    stream.wait();
    expect(calls == 100, "a task was not called exactly once before stream.wait() returned");
    expect(in_order, "tasks of one stream did not run in order, or address() of a live block is null");
  }

  void failure() {
    std::atomic<int> calls{0};
    auto stream = device_.make_stream();
    auto const before = device_.record(stream);
    device_.submit(stream, [](auto&) { throw std::runtime_error("the reason of the failure"); });
    device_.submit(stream, [&calls](auto&) { ++calls; });
    auto const after = device_.record(stream);
    for (int i = 0; i < 2; ++i) {
      auto const by_event = thrown_by([&] { after.wait(); });
      auto const by_stream = thrown_by([&] { stream.wait(); });
      expect(by_event && by_event->code() == errc::device_failed,
             "event.wait() does not throw device_failed every time");
      expect(by_stream && by_stream->code() == errc::device_failed,
             "stream.wait() does not throw device_failed every time");
      expect(by_event && std::string(by_event->what()).find("the reason of the failure") != std::string::npos,
             "the text of the failure is lost");
    }
    expect(!thrown_by([&] { before.wait(); }), "an event recorded before the failure throws");
    expect(after.done(), "an event after the failure is never done");
    expect(calls == 0, "work of a failed stream was not dropped");

    auto dependent = device_.make_stream();
    device_.wait(dependent, after);
    device_.submit(dependent, [&calls](auto&) { ++calls; });
    expect(thrown_by([&] { dependent.wait(); }).has_value() && calls == 0, "work that depends on failed work ran");

    auto other = device_.make_stream();
    device_.submit(other, [&calls](auto&) { ++calls; });
    other.wait();
    expect(calls == 1, "a failed stream makes others fail");
  }

  void moves() {
    auto const source = pattern(4);
    std::vector<std::byte> back(size);
    auto stream = device_.make_stream();
    D moved{std::move(device_)};
    {
      held_block const block{moved, bytes{size}};
      auto moved_stream = std::move(stream);
      moved.copy_to_device(moved_stream, block.block.data, source);
      moved.copy_to_host(moved_stream, back, block.block.data);
      moved_stream.wait();
    }
    device_ = std::move(moved);
    expect(back == source, "a moved device or a moved stream does not work on");
  }

  D& device_;
  std::string name_;
  std::vector<std::string> broken_;
};

}  // namespace detail

/// Runs a device through its laws. Pre: nothing else uses it, and its budget has 256 KiB left. It is moved away and back.
/// Returns  the broken laws, as sentences; none: it conforms.
/// Errors   none: what the device throws is a broken law.
/// Threads  one thread; the device uses its own.
template <Device D>
[[nodiscard]] std::vector<std::string> check_device(D& device) {
  return detail::device_check<D>{device}.run();
}

}  // namespace spillway::inline v0::testing
