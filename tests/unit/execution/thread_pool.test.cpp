// SPDX-License-Identifier: Apache-2.0
#include <spillway/execution/thread_pool.hpp>

#include <atomic>
#include <cstddef>
#include <filesystem>
#include <iterator>
#include <mutex>
#include <set>
#include <stdexcept>
#include <thread>
#include <vector>

#include "support/allocation_count.hpp"
#include "support/catch.hpp"

using spillway::thread_pool;

namespace {
std::ptrdiff_t threads_of_this_process() {
  return std::distance(std::filesystem::directory_iterator("/proc/self/task"), std::filesystem::directory_iterator{});
}
}  // namespace

TEST_CASE("thread_pool: every task runs exactly once, and all are done on return") {
  for (unsigned const threads : {1U, 2U, 5U}) {
    thread_pool pool(threads);
    CHECK(pool.threads() == threads);
    for (std::size_t const tasks : {0U, 1U, 2U, 7U, 10000U}) {
      std::vector<std::atomic<int>> ran(tasks);
      pool.run(tasks, [&](std::size_t task) { ++ran[task]; });
      bool once = true;
      for (auto const& n : ran) once = once && n == 1;
      CHECK(once);
    }
  }
}

TEST_CASE("thread_pool: the caller works too, so a pool of one starts no thread and one of three starts two") {
  std::thread([] {}).join();  // with its first thread a sanitizer starts one of its own
  auto const before = threads_of_this_process();
  {
    thread_pool pool(1);
    CHECK(threads_of_this_process() == before);
    std::thread::id ran_on;
    pool.run(3, [&](std::size_t) { ran_on = std::this_thread::get_id(); });
    CHECK(ran_on == std::this_thread::get_id());
  }
  thread_pool const pool(3);
  CHECK(threads_of_this_process() == before + 2);
}

TEST_CASE("thread_pool: by default as many threads as processors that this process may use") {
  CHECK(spillway::usable_processors() >= 1);
  CHECK(thread_pool{}.threads() == spillway::usable_processors());
  CHECK(thread_pool{100000}.threads() == thread_pool::most_threads);
  cpu_set_t before;
  REQUIRE(::sched_getaffinity(0, sizeof before, &before) == 0);
  cpu_set_t one;
  CPU_ZERO(&one);
  for (int cpu = 0; cpu < CPU_SETSIZE && CPU_COUNT(&one) == 0; ++cpu) {
    if (CPU_ISSET(cpu, &before)) CPU_SET(cpu, &one);
  }
  REQUIRE(::sched_setaffinity(0, sizeof one, &one) == 0);
  unsigned const usable = spillway::usable_processors();
  ::sched_setaffinity(0, sizeof before, &before);
  CHECK(usable == 1);
}

TEST_CASE("thread_pool: several threads work at once") {
  thread_pool pool(3);
  std::atomic<int> arrived{0};
  pool.run(3, [&](std::size_t) {
    ++arrived;
    while (arrived < 3) std::this_thread::yield();  // ends only when all three are inside
  });
  CHECK(arrived == 3);
}

TEST_CASE("thread_pool: the first exception comes back after all that had begun are done, and the pool goes on") {
  for (unsigned const threads : {1U, 4U}) {
    thread_pool pool(threads);
    std::atomic<int> inside{0};
    std::atomic<int> ran{0};
    CHECK_THROWS_AS(pool.run(1000,
                             [&](std::size_t task) {
                               ++inside;
                               ++ran;
                               std::this_thread::yield();
                               --inside;
                               if (task == 5) throw std::runtime_error("task 5");
                             }),
                    std::runtime_error);
    CHECK(inside == 0);
    CHECK(ran <= 1000);
    std::atomic<int> later{0};
    pool.run(10, [&](std::size_t) { ++later; });
    CHECK(later == 10);
  }
}

TEST_CASE("thread_pool: may be used by several threads at once") {
  thread_pool pool(3);
  std::atomic<std::uint64_t> sum{0};
  std::vector<std::thread> callers;
  for (int c = 0; c < 4; ++c) {
    callers.emplace_back([&] {
      for (int round = 0; round < 50; ++round) pool.run(20, [&](std::size_t task) { sum += task; });
    });
  }
  for (auto& t : callers) t.join();
  CHECK(sum == 4 * 50 * 190);
}

TEST_CASE("thread_pool: no allocation a run") {
  if constexpr (!test::allocations_are_counted) SKIP("a sanitizer has its own operator new");
  thread_pool pool(4);
  std::atomic<int> ran{0};
  auto const round = [&] { pool.run(100, [&](std::size_t) { ++ran; }); };
  for (int i = 0; i < 20; ++i) round();
  std::uint64_t const before = test::allocations();
  for (int i = 0; i < 100; ++i) round();
  CHECK(test::allocations() == before);
}

#if defined(__x86_64__)
TEST_CASE("thread_pool: denormals are kept inside every task, and the caller's setting comes back") {
  unsigned const before = _mm_getcsr();
  _mm_setcsr(0x9fc0U);
  thread_pool pool(3);  // its threads start as this one is
  std::atomic<int> kept{0};
  pool.run(60, [&](std::size_t) { kept += (_mm_getcsr() & 0xffc0U) == 0x1f80U ? 1 : 0; });
  unsigned const after = _mm_getcsr();
  _mm_setcsr(before);
  CHECK(kept == 60);
  CHECK((after & 0xffc0U) == 0x9fc0U);
}
#endif
