// SPDX-License-Identifier: Apache-2.0
#include <spillway/device/host_device.hpp>

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstring>
#include <future>
#include <limits>
#include <memory>
#include <numeric>
#include <optional>
#include <random>
#include <stdexcept>
#include <thread>
#include <vector>

#include "support/allocation_count.hpp"
#include "support/catch.hpp"
#include "support/failures.hpp"
#include "support/sanitizers.hpp"

using namespace spillway::literals;
using spillway::bytes;
using spillway::device_block;
using spillway::errc;
using spillway::host_device;

namespace {
using test::thrown_by;
constexpr std::size_t small = 4096;

[[nodiscard]] std::vector<std::byte> filled(std::size_t n, int value) { return {n, static_cast<std::byte>(value)}; }

/// Holds a stream up until it is opened.
class gate {
 public:
  void close(host_device& device, host_device::stream& stream) {
    device.submit(stream, [opened = opened_.get_future().share()](auto&) { opened.wait(); });
  }
  void open() { opened_.set_value(); }

 private:
  std::promise<void> opened_;
};

/// The signal that ends a child process which runs `body`; 0 when it lives.
template <class Body>
[[nodiscard]] int signal_that_ends(Body body) {
  pid_t const child = ::fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    // A sanitizer's or Catch's handler would report instead of dying, and the contract's message is not ours to print.
    for (int const s : {SIGSEGV, SIGABRT, SIGBUS}) std::signal(s, SIG_DFL);
    ::close(STDERR_FILENO);
    body();
    ::_exit(0);
  }
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}
}  // namespace

TEST_CASE("host_device: bytes go to the device and come back") {
  host_device device{{.memory = 1_MiB}};
  auto const block = device.allocate(bytes{small});
  auto stream = device.make_stream();
  auto const source = filled(small, 7);
  auto back = filled(small, 0);
  device.copy_to_device(stream, block.data, source);
  device.submit(stream, [block](host_device::context& context) { *context.address(block.data + 5) = std::byte{9}; });
  device.copy_to_host(stream, back, block.data);
  stream.wait();
  auto expected = source;
  expected[5] = std::byte{9};
  CHECK(back == expected);
}

TEST_CASE("host_device: says that it is simulated, how large it is and how fast its link") {
  CHECK(host_device{{.memory = 64_MiB}}.name() == "simulated accelerator (host_device, 64.0 MiB)");
  CHECK(host_device{{.memory = 1_GiB, .link_bytes_per_second = 2147483648.0}}.name() ==
        "simulated accelerator (host_device, 1.00 GiB, link 2.00 GiB/s)");
}

TEST_CASE("host_device: options that make no sense are refused by name") {
  CHECK(thrown_by([] { host_device{{}}; }).code() == errc::invalid_option);
  for (double const rate : {-1.0, 0.5, 1e19, std::numeric_limits<double>::quiet_NaN()}) {
    auto const refused = thrown_by([rate] { host_device{{.memory = 1_MiB, .link_bytes_per_second = rate}}; });
    CHECK(refused.code() == errc::invalid_option);
    CHECK(std::string(refused.what()).find("link_bytes_per_second") != std::string::npos);
  }
  auto const too_large = thrown_by([] { host_device{{.memory = bytes{1ULL << 62U}}}; });
  CHECK(too_large.code() == std::errc::not_enough_memory);
  CHECK(too_large.about().wanted == bytes{1ULL << 62U});
}

TEST_CASE("host_device: the budget is hard, and the refusal names what was wanted and what is left") {
  host_device device{{.memory = 64_KiB}};
  auto const first = device.allocate(40_KiB);
  auto const refused = thrown_by([&] { static_cast<void>(device.allocate(bytes{24577})); });
  CHECK(refused.code() == errc::capacity_exceeded);
  CHECK(refused.about().wanted == bytes{24577});
  CHECK(refused.about().got == 24_KiB);
  CHECK(std::string(refused.what()).find("64.0 KiB") != std::string::npos);
  CHECK(device.used() == 40_KiB);
  auto const rest = device.allocate(24_KiB);
  CHECK(device.used() == device.capacity());
  CHECK(thrown_by([&] { static_cast<void>(device.allocate(1_B)); }).about().got == 0_B);
  device.deallocate(first);
  device.deallocate(rest);
  CHECK(device.used() == 0_B);
  device.deallocate(device.allocate(64_KiB));
  CHECK(thrown_by([&] { static_cast<void>(device.allocate(bytes{~0ULL})); }).code() == errc::capacity_exceeded);
}

TEST_CASE("host_device: a budget that is not whole pages is still exact") {
  host_device device{{.memory = bytes{5000}}};
  CHECK(device.capacity() == bytes{5000});
  CHECK(thrown_by([&] { static_cast<void>(device.allocate(bytes{4900})); }).about().got == bytes{5000});
  auto const block = device.allocate(bytes{4864});
  CHECK(device.used() == bytes{4864});
  device.deallocate(block);
}

TEST_CASE("host_device: used counts multiples of 256 B, the peak is kept") {
  host_device device{{.memory = 1_MiB}};
  CHECK(device.peak() == 0_B);
  auto const a = device.allocate(bytes{1});
  CHECK(device.used() == bytes{256});
  auto const b = device.allocate(bytes{257});
  CHECK(device.used() == bytes{768});
  device.deallocate(a);
  CHECK(device.used() == bytes{512});
  auto const c = device.allocate(bytes{100});
  CHECK(device.used() == bytes{768});
  CHECK(device.peak() == bytes{768});
  CHECK(device.allocate(0_B).data == nullptr);
  device.deallocate(device_block{});
  device.deallocate(b);
  device.deallocate(c);
  CHECK(device.used() == 0_B);
  device.deallocate(device.allocate(1_B));
  CHECK(device.peak() == bytes{768});
}

TEST_CASE("host_device: free memory in pieces is refused as such") {
  host_device device{{.memory = 64_KiB}};
  std::vector<device_block> blocks;
  for (int i = 0; i < 16; ++i) blocks.push_back(device.allocate(4_KiB));
  for (std::size_t i = 0; i < 16; i += 2) device.deallocate(blocks[i]);
  auto const refused = thrown_by([&] { static_cast<void>(device.allocate(8_KiB)); });
  CHECK(refused.code() == errc::capacity_exceeded);
  CHECK(refused.about().got == 4_KiB);
  CHECK(refused.about().detail.find("not in one piece") != std::string::npos);
  device.deallocate(blocks[1]);
  CHECK(device.allocate(12_KiB).data == blocks[0].data);
}

TEST_CASE("host_device: live blocks never overlap, whatever the order of allocation (B02, B03)") {
  host_device device{{.memory = 1_MiB}};
  std::mt19937 random{3};
  std::vector<device_block> live;
  for (int round = 0; round < 4000; ++round) {
    if (random() % 2 == 0 || live.empty()) {
      try {
        live.push_back(device.allocate(bytes{1 + random() % 60000}));
      } catch (spillway::error const& full) {
        REQUIRE(full.code() == errc::capacity_exceeded);
        device.deallocate(live.back());
        live.pop_back();
      }
    } else {
      std::swap(live[random() % live.size()], live.back());
      device.deallocate(live.back());
      live.pop_back();
    }
    std::sort(live.begin(), live.end(), [](auto const& a, auto const& b) { return a.data < b.data; });
    std::uint64_t sum = 0;
    for (std::size_t i = 0; i < live.size(); ++i) {
      if (i > 0) REQUIRE(live[i - 1].data + live[i - 1].size.count <= live[i].data);
      sum += spillway::round_up(live[i].size.count, 256);
    }
    REQUIRE(device.used() == bytes{sum});
  }
  for (auto const& block : live) device.deallocate(block);
  device.deallocate(device.allocate(1_MiB));
}

TEST_CASE("host_device: host code that touches device memory faults") {
  host_device device{{.memory = 1_MiB}};
  auto const block = device.allocate(bytes{small});
  CHECK(signal_that_ends([] {}) == 0);
  CHECK(signal_that_ends([&] { static_cast<void>(*static_cast<std::byte volatile*>(block.data)); }) == SIGSEGV);
  CHECK(signal_that_ends([&] { *static_cast<std::byte volatile*>(block.data + small - 1) = std::byte{}; }) == SIGSEGV);
}

TEST_CASE("host_device: an address that is in no live block of the device is the caller's bug") {
  host_device device{{.memory = 1_MiB}}, other{{.memory = 1_MiB}};
  auto const block = device.allocate(bytes{small});
  auto const freed = device.allocate(bytes{small});
  auto const foreign = other.allocate(bytes{small});
  device.deallocate(freed);
  std::byte on_host{};
  for (std::byte* const p : {freed.data, foreign.data, &on_host, static_cast<std::byte*>(nullptr)}) {
    CHECK(signal_that_ends([&] {
            auto stream = device.make_stream();
            device.submit(stream, [p](host_device::context& context) { *context.address(p) = std::byte{}; });
            stream.wait();
          }) == SIGABRT);
  }
  auto const source = filled(small + 257, 1);
  CHECK(signal_that_ends([&] {
          auto stream = device.make_stream();
          device.copy_to_device(stream, block.data, source);
          stream.wait();
        }) == SIGABRT);
  CHECK(signal_that_ends([&] { device.deallocate(freed); }) == SIGABRT);
}

TEST_CASE("host_device: a copy reads its source when its turn comes, and its event says when that is over (O01, O02)") {
  host_device device{{.memory = 1_MiB}};
  auto const block = device.allocate(bytes{small});
  auto stream = device.make_stream();
  gate held;
  held.close(device, stream);
  auto source = filled(small, 1);
  auto back = filled(small, 0);
  device.copy_to_device(stream, block.data, source);
  device.copy_to_host(stream, back, block.data);
  auto const done = device.record(stream);
  CHECK_FALSE(done.done());
  CHECK(back == filled(small, 0));
  // Nothing was copied at the call: who overwrites the source before the event is done sends other bytes.
  std::fill(source.begin(), source.end(), std::byte{2});
  held.open();
  done.wait();
  CHECK(done.done());
  CHECK(back == filled(small, 2));
}

TEST_CASE("host_device: a delayed copy leaves the host's bytes as they were until the event (O03)") {
  host_device device{{.memory = 4_MiB, .link_bytes_per_second = 20e6}};
  auto const block = device.allocate(1_MiB);
  auto stream = device.make_stream();
  auto const source = filled(1U << 20U, 5);
  auto back = filled(1U << 20U, 0);
  device.copy_to_device(stream, block.data, source);
  auto const sent = device.record(stream);
  device.copy_to_host(stream, back, block.data);
  auto const received = device.record(stream);
  CHECK_FALSE(received.done());
  sent.wait();
  CHECK_FALSE(received.done());
  received.wait();
  CHECK(back == source);
}

TEST_CASE("host_device: order follows the stream that each call names (O04)") {
  host_device device{{.memory = 1_MiB}};
  auto const block = device.allocate(bytes{small});
  auto a = device.make_stream();
  auto b = device.make_stream();
  gate held;
  held.close(device, a);
  auto const one = filled(small, 1), two = filled(small, 2);
  auto early = filled(small, 0), late = filled(small, 0);
  device.copy_to_device(b, block.data, one);
  device.copy_to_device(a, block.data, two);  // behind the gate
  device.copy_to_host(b, early, block.data);
  b.wait();  // does not wait for a
  CHECK(early == one);
  auto const written = device.record(a);
  device.wait(b, written);
  device.copy_to_host(b, late, block.data);
  CHECK_FALSE(device.record(b).done());
  held.open();
  b.wait();
  CHECK(late == two);
}

TEST_CASE("host_device: an event covers the work before it, not the work after") {
  host_device device{{.memory = 1_MiB}};
  auto stream = device.make_stream();
  gate first, second;
  first.close(device, stream);
  auto const between = device.record(stream);
  second.close(device, stream);
  auto const end = device.record(stream);
  CHECK_FALSE(between.done());
  first.open();
  between.wait();
  CHECK_FALSE(end.done());
  second.open();
  end.wait();
  CHECK(host_device::event{}.done());
}

TEST_CASE("host_device: destroying a stream waits for its work, its events and blocks stay") {
  std::optional<host_device> device{host_device{{.memory = 1_MiB}}};
  auto const block = device->allocate(bytes{small});
  auto back = filled(small, 0);
  host_device::event last;
  auto const source = filled(small, 4);
  {
    auto stream = device->make_stream();
    device->submit(stream, [](auto&) { std::this_thread::sleep_for(std::chrono::milliseconds(20)); });
    device->copy_to_device(stream, block.data, source);
    device->copy_to_host(stream, back, block.data);
    last = device->record(stream);
  }
  CHECK(last.done());
  CHECK(back == source);
  auto after = device->make_stream();
  device->wait(after, last);
  device->copy_to_host(after, back, block.data);
  device.reset();  // the stream keeps the memory
  after.wait();
  CHECK(back == source);
}

TEST_CASE("host_device: a stream that is assigned over finishes its work first") {
  host_device device{{.memory = 1_MiB}};
  std::atomic<int> done{0};
  auto stream = device.make_stream();
  device.submit(stream, [&done](auto&) {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    ++done;
  });
  stream = device.make_stream();
  CHECK(done == 1);
  device.submit(stream, [&done](auto&) { ++done; });
  stream.wait();
  CHECK(done == 2);
}

TEST_CASE("host_device: a failed task stops its stream, and every wait says why") {
  host_device device{{.memory = 1_MiB}};
  auto const block = device.allocate(bytes{small});
  auto stream = device.make_stream();
  auto const before = filled(small, 1), after = filled(small, 2);
  auto back = filled(small, 0);
  device.copy_to_device(stream, block.data, before);
  auto const good = device.record(stream);
  device.submit(stream, [](auto&) { throw std::runtime_error("chunk 7 is bad"); });
  auto const bad = device.record(stream);
  device.copy_to_device(stream, block.data, after);
  device.copy_to_host(stream, back, block.data);
  for (int i = 0; i < 3; ++i) {
    auto const by_stream = thrown_by([&] { stream.wait(); });
    CHECK(by_stream.code() == errc::device_failed);
    CHECK(by_stream.about().detail == "chunk 7 is bad");
    CHECK(thrown_by([&] { bad.wait(); }).about().detail == "chunk 7 is bad");
  }
  good.wait();
  CHECK(bad.done());
  CHECK(back == filled(small, 0));
  auto other = device.make_stream();
  device.copy_to_host(other, back, block.data);
  other.wait();
  CHECK(back == before);
  device.wait(other, bad);
  device.copy_to_host(other, back, block.data);
  CHECK(thrown_by([&] { other.wait(); }).about().detail == "chunk 7 is bad");
}

TEST_CASE("host_device: what a task owns is gone before its work counts as done") {
  struct slow_to_go {
    explicit slow_to_go(std::atomic<int>& count) : gone(count) {}
    slow_to_go(slow_to_go const&) = delete;
    slow_to_go& operator=(slow_to_go const&) = delete;
    ~slow_to_go() {
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      ++gone;
    }
    std::atomic<int>& gone;
  };
  std::atomic<int> gone{0};
  host_device device{{.memory = 1_MiB}};
  auto stream = device.make_stream();
  device.submit(stream, [owned = std::make_unique<slow_to_go>(gone)](auto&) { throw 3; });
  auto const failed = device.record(stream);
  device.submit(stream, [owned = std::make_unique<slow_to_go>(gone)](auto&) {});
  auto const dropped = device.record(stream);
  while (!failed.done()) std::this_thread::yield();
  CHECK(gone >= 1);
  while (!dropped.done()) std::this_thread::yield();
  CHECK(gone == 2);
  CHECK(thrown_by([&] { stream.wait(); }).about().detail == "something that is not a std::exception");
}

TEST_CASE("host_device: a steady stream of work allocates nothing") {
  if constexpr (!test::allocations_are_counted) SKIP("a sanitizer has its own operator new");
  host_device device{{.memory = 1_MiB}};
  auto const block = device.allocate(bytes{small});
  auto one = device.make_stream();
  auto two = device.make_stream();
  auto source = filled(small, 1), back = filled(small, 0);
  auto const step = [&] {
    device.copy_to_device(one, block.data, source);
    std::array<std::byte*, 7> many{block.data};
    device.submit(one, [many](host_device::context& context) { *context.address(many[0]) = std::byte{3}; });
    auto const there = device.record(one);
    device.wait(two, there);
    device.copy_to_host(two, back, block.data);
    auto const copy = device.record(two);
    copy.wait();
  };
  step();
  auto const before = test::allocations();
  for (int i = 0; i < 200; ++i) step();
  CHECK(test::allocations() == before);
}

TEST_CASE("host_device: more work than a stream ever had keeps its order") {
  host_device device{{.memory = 1_MiB}};
  auto stream = device.make_stream();
  std::vector<int> order;
  for (int round = 0; round < 3; ++round) {
    gate held;
    held.close(device, stream);
    order.clear();
    for (int i = 0; i < 1000; ++i) device.submit(stream, [&order, i](auto&) { order.push_back(i); });
    held.open();
    stream.wait();
    std::vector<int> expected(1000);
    std::iota(expected.begin(), expected.end(), 0);
    CHECK(order == expected);
  }
}

TEST_CASE("host_device: the link has its speed, in each direction by itself, shared by all streams") {
  using clock = std::chrono::steady_clock;
  constexpr double rate = 100e6;
  constexpr std::size_t size = 4U << 20U;
  host_device device{{.memory = 32_MiB, .link_bytes_per_second = rate}};
  auto const a = device.allocate(bytes{size}), b = device.allocate(bytes{size});
  auto one = device.make_stream();
  auto two = device.make_stream();
  auto source = filled(size, 1), back = filled(size, 1);
  auto const seconds_of = [&](auto&& give) {
    auto const start = clock::now();
    give();
    one.wait();
    two.wait();
    return std::chrono::duration<double>(clock::now() - start).count();
  };
  constexpr double once = static_cast<double>(size) / rate;
  auto const within = [](double seconds) { return Catch::Matchers::WithinRel(seconds, 0.2); };
  // The machine may be busy: the best of a few.
  double alone = 1e9, in_pieces = 1e9, both_ways = 1e9, shared = 1e9;
  for (int i = 0; i < 5; ++i) {
    alone = std::min(alone, seconds_of([&] { device.copy_to_device(one, a.data, source); }));
    in_pieces = std::min(in_pieces, seconds_of([&] {
                           for (std::size_t at = 0; at < size; at += 32768) {
                             device.copy_to_host(one, std::span(back).subspan(at, 32768), a.data + at);
                           }
                         }));
    both_ways = std::min(both_ways, seconds_of([&] {
                           device.copy_to_device(one, a.data, source);
                           device.copy_to_host(two, back, b.data);
                         }));
    shared = std::min(shared, seconds_of([&] {
                        device.copy_to_device(one, a.data, source);
                        device.copy_to_device(two, b.data, source);
                      }));
  }
  CHECK_THAT(alone, within(once));
  CHECK_THAT(in_pieces, within(once));
  CHECK_THAT(both_ways, within(once));
  CHECK_THAT(shared, within(2 * once));
}

TEST_CASE("host_device: memory that is given back is no longer held by the host") {
  if constexpr (test::address_sanitizer || test::thread_sanitizer) SKIP("a sanitizer holds memory of its own");
  host_device device{{.memory = 64_MiB}};
  auto const resident = [] {
    std::FILE* const file = std::fopen("/proc/self/statm", "r");
    REQUIRE(file != nullptr);
    long total = 0, pages = 0;
    REQUIRE(std::fscanf(file, "%ld %ld", &total, &pages) == 2);
    std::fclose(file);
    return pages * ::sysconf(_SC_PAGESIZE);
  };
  auto stream = device.make_stream();
  auto const before = resident();
  auto const block = device.allocate(64_MiB);
  device.submit(stream, [block](host_device::context& context) {
    std::memset(context.address(block.data), 1, block.size.count);
  });
  stream.wait();
  CHECK(resident() - before > (60 << 20));
  device.deallocate(block);
  CHECK(resident() - before < (8 << 20));
}
