// SPDX-License-Identifier: Apache-2.0
/// Hard cases that every engine must stand, with more work than a conformance check should do.
#pragma once

#include <spillway/core/bytes.hpp>
#include <spillway/core/error.hpp>
#include <spillway/io/file.hpp>
#include <spillway/io/transfer_engine_concept.hpp>

#include <fcntl.h>
#include <signal.h>
#include <sys/time.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "support/allocation_count.hpp"
#include "support/catch.hpp"
#include "support/failures.hpp"
#include "support/scratch.hpp"

namespace test {

using spillway::bytes;
using spillway::file;

inline std::vector<std::byte> counted(std::size_t n, std::uint64_t seed = 0) {
  std::vector<std::byte> out(n);
  std::uint64_t x = seed;
  for (std::byte& b : out) {
    x = x * 6364136223846793005U + 1442695040888963407U;
    b = static_cast<std::byte>(x >> 56U);
  }
  return out;
}

/// F09.
template <spillway::TransferEngine Engine>
void sparse_offsets(Engine& engine) {
  scratch const folder;
  auto f = file<>::open(engine.file_system(), folder / "sparse", O_RDWR | O_CREAT);
  std::uint64_t const places[] = {(1ULL << 31U) - 100, (1ULL << 32U) - 50, 5ULL << 30U};
  std::uint64_t seed = 0;
  for (std::uint64_t const at : places) engine.write(f.reference(), bytes{at}, counted(70000, ++seed)).wait();
  seed = 0;
  for (std::uint64_t const at : places) {
    std::vector<std::byte> got(70000);
    engine.read(f.reference(), bytes{at}, got).wait();
    CHECK(got == counted(70000, ++seed));
    std::fill(got.begin(), got.end(), std::byte{0});
    f.read_exact(bytes{at}, got);  // and it is there for others
    CHECK(got == counted(70000, seed));
  }
  CHECK(f.size() == bytes{(5ULL << 30U) + 70000});
}

/// F11, F12: many more requests in flight than the engine takes at once.
template <spillway::TransferEngine Engine>
void many_requests(Engine& engine, std::size_t count) {
  constexpr std::size_t size = 64;
  scratch const folder;
  auto f = file<>::open(engine.file_system(), folder / "many", O_RDWR | O_CREAT);
  auto const wanted = counted(count * size, 3);
  f.truncate(bytes{wanted.size()});
  std::vector<spillway::transfer> running;
  running.reserve(count);
  for (std::size_t i = 0; i < count; ++i) {
    std::size_t const at = (i * 7919) % count * size;  // 7919 is prime: every place once, not in order
    running.push_back(engine.write(f.reference(), bytes{at}, std::span{wanted}.subspan(at, size)));
  }
  for (spillway::transfer& t : running) t.wait();
  std::vector<std::byte> got(wanted.size());
  f.read_exact({}, got);
  CHECK((got == wanted));
  running.clear();
  std::fill(got.begin(), got.end(), std::byte{0});
  for (std::size_t i = 0; i < count; ++i) {
    running.push_back(engine.read(f.reference(), bytes{i * size}, std::span{got}.subspan(i * size, size)));
  }
  engine.drain();
  CHECK(std::all_of(running.begin(), running.end(), [](spillway::transfer& t) { return t.poll(); }));
  CHECK((got == wanted));
}

/// F18: a signal every millisecond, handler without SA_RESTART.
template <spillway::TransferEngine Engine>
void under_signals(Engine& engine) {
  scratch const folder;
  auto f = file<>::open(engine.file_system(), folder / "signals", O_RDWR | O_CREAT);
  struct sigaction action {};
  struct sigaction before {};
  static std::atomic<int> signals;
  signals = 0;
  action.sa_handler = [](int) { ++signals; };
  REQUIRE(::sigaction(SIGALRM, &action, &before) == 0);
  itimerval const every{{0, 1000}, {0, 1000}};
  itimerval const never{};
  REQUIRE(::setitimer(ITIMER_REAL, &every, nullptr) == 0);
  auto const wanted = counted(std::size_t{8} << 20U, 4);
  std::vector<std::byte> got(wanted.size());
  bool same = true;
  for (int round = 0; round < 1000 && (round < 10 || signals < 50); ++round) {
    engine.write(f.reference(), {}, wanted).wait();
    std::fill(got.begin(), got.end(), std::byte{0});
    engine.read(f.reference(), {}, got).wait();
    same = same && got == wanted;
  }
  ::setitimer(ITIMER_REAL, &never, nullptr);
  ::sigaction(SIGALRM, &before, nullptr);
  CHECK(same);
  CHECK(signals >= 50);
}

/// F25, O05: the engine ends with 64 writes and a read in flight; the tokens end later.
template <spillway::TransferEngine Engine>
void end_in_flight(Engine engine) {
  scratch const folder;
  spillway::posix_file_system files;
  auto f = file<>::open(files, folder / "end", O_RDWR | O_CREAT);
  auto const wanted = counted(std::size_t{64} * 100000, 5);
  std::vector<std::byte> got(100000);
  std::vector<spillway::transfer> running;
  for (std::size_t i = 0; i < 64; ++i) {
    running.push_back(engine.write(f.reference(), bytes{i * 100000}, std::span{wanted}.subspan(i * 100000, 100000)));
  }
  running.push_back(engine.read(f.reference(), bytes{wanted.size()}, got));  // fails: there is nothing
  { Engine const ends = std::move(engine); }
  std::vector<std::byte> there(wanted.size());
  f.read_exact({}, there);
  CHECK((there == wanted));
  f.close();
  CHECK(code_of([&] { running.back().wait(); }) == spillway::errc::short_transfer);
  running.pop_back();
  for (spillway::transfer& t : running) CHECK(t.poll());
}

/// B11.
template <spillway::TransferEngine Engine>
void steady_state(Engine& engine) {
  scratch const folder;
  auto f = file<>::open(engine.file_system(), folder / "steady", O_RDWR | O_CREAT);
  auto const data = counted(std::size_t{1} << 20U);
  std::vector<std::byte> to(data.size());
  auto const round = [&] {
    spillway::transfer running[40];
    for (std::size_t i = 0; i < 40; ++i) running[i] = engine.write(f.reference(), bytes{(i % 4) * data.size()}, data);
    for (auto& t : running) t.wait();
    for (std::size_t i = 0; i < 40; ++i) running[i] = engine.read(f.reference(), {}, std::span{to}.first(i * 1000));
    for (auto& t : running) {
      while (!t.poll()) {
      }
    }
  };
  round();
  std::uint64_t const before = allocations();
  for (int i = 0; i < 5; ++i) round();
  CHECK(allocations() == before);
}

/// Several threads, each with its own part of a file and transfers of mixed length.
template <spillway::TransferEngine Engine>
void from_many_threads(Engine& engine) {
  constexpr std::size_t part = 200000;
  scratch const folder;
  auto f = file<>::open(engine.file_system(), folder / "threads", O_RDWR | O_CREAT);
  f.truncate(bytes{4 * part});
  std::vector<std::thread> workers;
  bool same[4] = {};
  for (std::size_t w = 0; w < 4; ++w) {
    workers.emplace_back([&, w] {
      auto const wanted = counted(part, w + 10);
      bool good = true;
      for (std::size_t round = 0; round < 20; ++round) {
        std::vector<spillway::transfer> running;
        std::size_t const step = 5000 + round * 1000;
        for (std::size_t at = 0; at < part; at += step) {
          auto const piece = std::span{wanted}.subspan(at, std::min(step, part - at));
          running.push_back(engine.write(f.reference(), bytes{w * part + at}, piece));
        }
        for (std::size_t i = 0; i < running.size(); ++i) i % 2 == 0 ? running[i].wait() : void(running[i].poll());
        running.clear();
        std::vector<std::byte> got(part);
        engine.read(f.reference(), bytes{w * part}, got).wait();
        good = good && got == wanted;
      }
      same[w] = good;
    });
  }
  for (std::thread& t : workers) t.join();
  for (bool const good : same) CHECK(good);
}

}  // namespace test
