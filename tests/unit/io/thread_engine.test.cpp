// SPDX-License-Identifier: Apache-2.0
#include <spillway/io/file.hpp>
#include <spillway/io/thread_engine.hpp>

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/time.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "support/allocation_count.hpp"
#include "support/catch.hpp"
#include "support/engine_cases.hpp"
#include "support/fault_file_system.hpp"
#include "support/scratch.hpp"

using namespace spillway::literals;
using spillway::bytes;
using spillway::errc;
using spillway::error;
using spillway::file;
using spillway::thread_engine;
using spillway::transfer;
using faulty_engine = thread_engine<test::fault_file_system>;
using faulty_file = file<test::fault_file_system>;

namespace {
struct faulty {
  test::scratch folder;
  test::fault_file_system files;
  faulty_engine engine{{.threads = 2, .request = 4_KiB}, files};
  faulty_file f = faulty_file::open(files, folder / "f", O_RDWR | O_CREAT);
  std::vector<std::byte> data = test::counted(10 * 4096);
};
}  // namespace

TEST_CASE("thread_engine: options that make no sense are refused") {
  CHECK(test::code_of([] { thread_engine<>{{.threads = 0}}; }) == errc::invalid_option);
  CHECK(test::code_of([] { thread_engine<>{{.request = 0_B}}; }) == errc::invalid_option);
  CHECK(test::code_of([] { thread_engine<>{{.request = 5000_B}}; }) == errc::invalid_option);
}

TEST_CASE("thread_engine: the report says that it was not probed, or what the program says") {
  CHECK(thread_engine<>{}.report().name == "thread");
  CHECK(thread_engine<>{}.report().reason == "chosen by type: io_uring was not tried");
  CHECK(thread_engine<>{{.reason = "built without the uring component"}}.report().reason ==
        "built without the uring component");
}

TEST_CASE_METHOD(faulty, "thread_engine: a failure names operation, path, offset, wanted, got and errno") {
  files.plan().set(test::call::write, {.from = 4, .error = EIO});  // any three of the ten pieces may be over by then
  engine.write(f.reference(), 8192_B, std::span{data}.first(3 * 4096)).wait();
  transfer writing = engine.write(f.reference(), 8192_B, data);
  auto const failed = test::failure_of([&] { writing.wait(); });
  REQUIRE(failed);
  CHECK(failed->code() == std::error_code(EIO, std::system_category()));
  CHECK(failed->about().where == "thread_engine write");
  CHECK(failed->about().path == folder / "f");
  CHECK(failed->about().offset == 8192);
  CHECK(failed->about().wanted == 40960_B);
  CHECK(failed->about().got == 0_B);
  CHECK(std::string(failed->what()).find("Input/output error") != std::string::npos);
  CHECK(writing.status() == failed->code());
}

TEST_CASE("thread_engine: got counts the bytes before the failure, whatever came after it") {
  test::scratch const folder;
  test::fault_file_system files;
  faulty_engine engine{{.threads = 1, .request = 4_KiB}, files};
  faulty_file f = faulty_file::open(files, folder / "f", O_RDWR | O_CREAT);
  files.plan().set(test::call::write, {.from = 4, .error = ENOSPC});
  auto const data = test::counted(10 * 4096);
  auto const failed = test::failure_of([&] { engine.write(f.reference(), {}, data).wait(); });
  REQUIRE(failed);
  CHECK(failed->about().got == 3 * 4096_B);
  CHECK(files.plan().count(test::call::write) == 4);  // and no more is tried
}

TEST_CASE_METHOD(faulty, "thread_engine: a write that moves nothing is an error, not a loop") {
  files.plan().set(test::call::write, {.at_most = 0});
  CHECK(test::code_of([&] { engine.write(f.reference(), {}, data).wait(); }) == errc::short_transfer);
}

TEST_CASE_METHOD(faulty, "thread_engine: EAGAIN is retried, but not for ever") {
  files.plan().set(test::call::write, {.every = 2, .error = EAGAIN});
  engine.write(f.reference(), {}, data).wait();
  files.plan().set(test::call::write, {.error = EAGAIN});
  CHECK(test::code_of([&] { engine.write(f.reference(), {}, std::span{data}.first(100)).wait(); }) ==
        std::error_code(EAGAIN, std::system_category()));
}

TEST_CASE_METHOD(faulty, "thread_engine: one failed transfer leaves the others and the engine alone") {
  engine.write(f.reference(), {}, data).wait();
  std::vector<std::byte> over(data.size());
  std::vector<std::byte> good(data.size());
  transfer fails = engine.read(f.reference(), bytes{data.size()}, over);
  transfer works = engine.read(f.reference(), {}, good);
  works.wait();
  CHECK(good == data);
  CHECK(test::code_of([&] { fails.wait(); }) == errc::short_transfer);
  engine.read(f.reference(), {}, good).wait();
}

TEST_CASE_METHOD(faulty, "thread_engine: a file system that throws reaches the waiter at once") {
  files.plan().set(test::call::read, {.throws = true});
  auto const start = std::chrono::steady_clock::now();
  CHECK_THROWS_WITH(engine.read(f.reference(), {}, data).wait(), "a file system that throws");
  CHECK(std::chrono::steady_clock::now() - start < std::chrono::seconds{1});
  files.plan().clear();
  engine.write(f.reference(), {}, data).wait();  // no worker was lost
}

TEST_CASE_METHOD(faulty, "thread_engine: a direct read that ends inside a block is the end of the file") {
  engine.write(f.reference(), {}, std::span{data}.first(4096)).wait();
  files.plan().set(test::call::read, {.times = 1, .at_most = 1000});
  f.truncate(1000_B);
  test::fault second{.from = 2, .error = EINVAL};  // what Linux says to a direct read at an unaligned offset
  files.plan().set(test::call::read, second);
  std::vector<std::byte> to(4096);
  auto const failed = test::failure_of([&] { engine.read(f.reference(), {}, to).wait(); });
  REQUIRE(failed);
  CHECK(failed->code() == errc::short_transfer);
  CHECK(failed->about().got == 1000_B);
}

TEST_CASE_METHOD(faulty, "thread_engine: a request is cut into pieces, also when calls move less") {
  engine.write(f.reference(), {}, data).wait();
  CHECK(files.plan().count(test::call::write) == 10);
}

namespace {
/// Moves nothing and remembers how much it was asked for.
struct size_recorder {
  std::shared_ptr<std::atomic<std::uint64_t>> largest = std::make_shared<std::atomic<std::uint64_t>>(0);
  std::shared_ptr<std::atomic<std::uint64_t>> total = std::make_shared<std::atomic<std::uint64_t>>(0);
  spillway::call_result take(std::size_t n) const {
    std::uint64_t most = *largest;
    while (n > most && !largest->compare_exchange_weak(most, n)) {
    }
    *total += n;
    return {static_cast<std::int64_t>(n)};
  }
};
struct recording_file_system : test::fault_file_system {
  size_recorder seen;
  spillway::call_result read(spillway::open_handle, std::byte*, std::size_t n, std::uint64_t) const {
    return seen.take(n);
  }
  spillway::call_result write(spillway::open_handle, std::byte const*, std::size_t n, std::uint64_t) const {
    return seen.take(n);
  }
};
}  // namespace

namespace {
/// Both pieces of a transfer fail, the first one first.
struct failing_file_system : test::fault_file_system {
  failing_file_system() = default;
  spillway::call_result write(spillway::open_handle, std::byte const*, std::size_t, std::uint64_t offset) {
    std::this_thread::sleep_for(std::chrono::milliseconds{offset == 0 ? 50 : 150});
    return {offset == 0 ? -EIO : -ENOSPC};
  }
};
}  // namespace

TEST_CASE("thread_engine: of several failures the one at the lowest position is reported") {
  thread_engine<failing_file_system> engine{{.threads = 2, .request = 4_KiB}, failing_file_system{}};
  auto const failed = test::failure_of([&] { engine.write({}, {}, test::counted(8192)).wait(); });
  REQUIRE(failed);
  CHECK(failed->code() == std::error_code(EIO, std::system_category()));
  CHECK(failed->about().got == 0_B);
}

TEST_CASE("thread_engine: no call is over 1 GiB, whatever the options say") {
  recording_file_system files;
  thread_engine<recording_file_system> engine{{.threads = 2, .request = 4_GiB}, files};
  std::size_t const size = (std::size_t{2} << 30U) + 4096;
  void* const where = ::mmap(nullptr, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  REQUIRE(where != MAP_FAILED);
  engine.read({}, {}, {static_cast<std::byte*>(where), size}).wait();
  CHECK(*files.seen.largest == std::uint64_t{1} << 30U);
  CHECK(*files.seen.total == size);
  ::munmap(where, size);
}

TEST_CASE("thread_engine: bytes at 2 GiB, 4 GiB and 5 GiB of a sparse file") {
  thread_engine<> engine{{.threads = 2}};
  test::sparse_offsets(engine);
}
TEST_CASE("thread_engine: 20000 requests on two threads, each exactly once") {
  thread_engine<> engine{{.threads = 2, .request = 4_KiB}};
  test::many_requests(engine, 20000);
}
TEST_CASE("thread_engine: signals do not end a transfer") {
  thread_engine<> engine{{.threads = 4, .request = 64_KiB}};
  test::under_signals(engine);
}
TEST_CASE("thread_engine: its end waits for what is in flight") {
  test::end_in_flight(thread_engine<>{{.threads = 2}});
}
TEST_CASE("thread_engine: no allocation once warm") {
  if (!test::allocations_are_counted) SKIP("a sanitizer owns operator new");
  thread_engine<> engine{{.threads = 4, .request = 64_KiB}};
  test::steady_state(engine);
}
TEST_CASE("thread_engine: reads and writes of one buffer's neighbours on many threads") {
  thread_engine<> engine{{.threads = 4, .request = 4_KiB}};
  test::from_many_threads(engine);
}
