// SPDX-License-Identifier: Apache-2.0
#include <spillway/io/file.hpp>
#include <spillway/io/huge_buffer.hpp>
#include <spillway/uring/default_engine.hpp>
#include <spillway/uring/uring_engine.hpp>

#include <fcntl.h>
#include <liburing.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "support/allocation_count.hpp"
#include "support/catch.hpp"
#include "support/child.hpp"
#include "support/engine_cases.hpp"
#include "support/scratch.hpp"

using namespace spillway::literals;
using spillway::bytes;
using spillway::errc;
using spillway::file;
using spillway::huge_buffer;
using spillway::transfer;
using spillway::uring_engine;

// Where io_uring is refused the engine cannot be tested; that it is refused by name can.
#define NEEDS_IO_URING() \
  if (!uring_engine::probe().empty()) SKIP(uring_engine::probe())

namespace {
/// From now on this process gets EPERM for io_uring_setup, as in a container with the usual filter.
bool forbid_io_uring() {
  sock_filter code[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 0), BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_io_uring_setup, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM), BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
  sock_fprog program{4, code};
  return ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}
/// The descriptor of this process's only ring.
int ring_descriptor() {
  for (auto const& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    std::error_code ignored;
    if (std::filesystem::read_symlink(entry, ignored).string() == "anon_inode:[io_uring]") {
      return std::stoi(entry.path().filename().string());
    }
  }
  return -1;
}
}  // namespace

TEST_CASE("uring_engine: options that make no sense are refused") {
  CHECK(test::code_of([] { uring_engine{{.depth = 0}}; }) == errc::invalid_option);
  CHECK(test::code_of([] { uring_engine{{.request = 0_B}}; }) == errc::invalid_option);
  CHECK(test::code_of([] { uring_engine{{.request = 5000_B}}; }) == errc::invalid_option);
}

TEST_CASE("uring_engine: a refused io_uring is named, and default_engine works without it") {
  int const status = test::in_child([] {
    if (!forbid_io_uring()) return 77;
    if (uring_engine::probe() != "io_uring_setup: Operation not permitted") return 1;
    auto const failed = test::failure_of([] { uring_engine{}; });
    if (!failed || failed->code() != std::error_code(EPERM, std::system_category())) return 2;
    spillway::default_engine engine;
    if (engine.report().name != "thread") return 3;
    if (engine.report().reason != "uring: io_uring_setup: Operation not permitted; thread: works") return 4;
    std::vector<std::byte> to(100);
    spillway::posix_file_system files;
    auto f = file<>::open(files, "/proc/self/exe", O_RDONLY);
    engine.read(f.reference(), {}, to).wait();
    return to[1] == std::byte{'E'} ? 0 : 5;
  });
  if (status == 77) SKIP("no seccomp here");
  CHECK(status == 0);
}

TEST_CASE("uring_engine: default_engine reports io_uring where it works") {
  NEEDS_IO_URING();
  CHECK(spillway::default_engine{}.report().name == "uring");
  CHECK(spillway::default_engine{}.report().reason == "uring: works");
}

TEST_CASE("uring_engine: a failure names operation, path, offset, wanted, got and errno") {
  NEEDS_IO_URING();
  test::scratch const folder;
  uring_engine engine{{.depth = 4, .request = 4_KiB}};
  auto const data = test::counted(10 * 4096);
  { auto f = file<>::open(engine.file_system(), folder / "f", O_RDWR | O_CREAT); }
  auto f = file<>::open(engine.file_system(), folder / "f", O_RDONLY);
  transfer writing = engine.write(f.reference(), 8192_B, data);
  auto const failed = test::failure_of([&] { writing.wait(); });
  REQUIRE(failed);
  CHECK(failed->code() == std::error_code(EBADF, std::system_category()));
  CHECK(failed->about().where == "uring_engine write");
  CHECK(failed->about().path == folder / "f");
  CHECK(failed->about().offset == 8192);
  CHECK(failed->about().wanted == 40960_B);
  CHECK(failed->about().got == 0_B);
  CHECK(std::string(failed->what()).find("Bad file descriptor") != std::string::npos);
  CHECK(writing.status() == failed->code());
}

TEST_CASE(
    "uring_engine: a misaligned direct write is EINVAL, and a direct read over an unaligned end is the end of file") {
  NEEDS_IO_URING();
  test::scratch const folder;
  uring_engine engine;
  {
    auto f = file<>::open(engine.file_system(), folder / "f", O_RDWR | O_CREAT);
    f.write_all({}, test::counted(4096 + 1000));
  }
  auto const opened = engine.file_system().open((folder / "f").c_str(), O_RDWR | O_DIRECT, 0);
  if (!opened.ok()) SKIP("this file system refuses O_DIRECT");
  spillway::file_reference const f{{static_cast<int>(opened.value)}, "f"};
  huge_buffer const buffer{16_KiB};
  auto const failed = test::failure_of([&] { engine.read(f, {}, buffer.span()).wait(); });
  REQUIRE(failed);
  CHECK(failed->code() == errc::short_transfer);
  CHECK(failed->about().got == 5096_B);
  if (engine.file_system().direct_alignment(f.handle).value > 1) {
    CHECK(test::code_of([&] { engine.write(f, 1_B, buffer.span().first(4096)).wait(); }) ==
          std::error_code(EINVAL, std::system_category()));
  }
  static_cast<void>(engine.file_system().close(f.handle));
}

TEST_CASE("uring_engine: one request of 2 GiB + 4 KiB is complete") {
  NEEDS_IO_URING();
  if (test::address_sanitizer || test::thread_sanitizer) SKIP("too much for a sanitizer");
  constexpr std::uint64_t size = (2ULL << 30U) + 4096;
  constexpr std::uint64_t window = 2ULL << 20U;
  test::scratch const folder;
  uring_engine engine{{.request = 4_GiB}};  // cut to 1 GiB
  auto const end = test::counted(4096, 9);
  file<>::open(engine.file_system(), folder / "sparse", O_RDWR | O_CREAT).write_all(bytes{2ULL << 30U}, end);
  if (!engine.file_system().open((folder / "sparse").c_str(), O_RDWR | O_DIRECT, 0).ok()) SKIP("no O_DIRECT here");
  auto f = file<>::open(engine.file_system(), folder / "sparse", O_RDWR | O_DIRECT);  // 2 GiB of page cache take long
  // Where it goes: the same 2 MiB again and again, and a page of its own for the end.
  int const memory = ::memfd_create("window", MFD_CLOEXEC);
  REQUIRE(memory >= 0);
  REQUIRE(::ftruncate(memory, window) == 0);
  void* const base = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  REQUIRE(base != MAP_FAILED);
  auto* const to = static_cast<std::byte*>(base);
  for (std::uint64_t at = 0; at + window < size; at += window) {
    REQUIRE(::mmap(to + at, window, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, memory, 0) == to + at);
  }
  engine.read(f.reference(), {}, {to, size}).wait();
  CHECK(std::equal(end.begin(), end.end(), to + (2ULL << 30U)));
  ::munmap(base, size);
  ::close(memory);
}

TEST_CASE("uring_engine: bytes at 2 GiB, 4 GiB and 5 GiB of a sparse file") {
  NEEDS_IO_URING();
  uring_engine engine;
  test::sparse_offsets(engine);
}
TEST_CASE("uring_engine: 100000 requests at depth 4, each exactly once") {
  NEEDS_IO_URING();
  uring_engine engine{{.depth = 4, .request = 4_KiB}};
  test::many_requests(engine, 100000);
}
TEST_CASE("uring_engine: signals do not end a transfer") {
  NEEDS_IO_URING();
  uring_engine engine{{.request = 64_KiB}};
  test::under_signals(engine);
}
TEST_CASE("uring_engine: its end waits for what is in flight") {
  NEEDS_IO_URING();
  test::end_in_flight(uring_engine{});
  test::end_in_flight(uring_engine{{.depth = 2, .request = 4_KiB}});
}
TEST_CASE("uring_engine: no allocation once warm") {
  NEEDS_IO_URING();
  if (!test::allocations_are_counted) SKIP("a sanitizer owns operator new");
  uring_engine engine{{.depth = 16, .request = 64_KiB}};
  test::steady_state(engine);
}
TEST_CASE("uring_engine: transfers on many threads at once") {
  NEEDS_IO_URING();
  uring_engine engine{{.depth = 8, .request = 4_KiB}};
  test::from_many_threads(engine);
}

TEST_CASE("uring_engine: a transfer outlives the thread that started it") {
  NEEDS_IO_URING();
  test::scratch const folder;
  uring_engine engine{{.depth = 64, .request = 16_KiB}};
  auto const opened = engine.file_system().open((folder / "f").c_str(), O_RDWR | O_CREAT | O_DIRECT, 0600);
  if (!opened.ok()) SKIP("this file system refuses O_DIRECT");
  auto f = file<>::open(engine.file_system(), folder / "f", O_RDWR | O_DIRECT);
  static_cast<void>(engine.file_system().close({static_cast<int>(opened.value)}));
  huge_buffer const data{4_MiB};
  huge_buffer const got{4_MiB};
  auto const wanted = test::counted(data.span().size());
  std::copy(wanted.begin(), wanted.end(), data.data());
  for (int round = 0; round < 8; ++round) {
    f.truncate(
        {});  // direct writes that extend a file are done by kernel workers, which end with the thread that submits
    transfer writing;
    std::thread([&] { writing = engine.write(f.reference(), {}, data.span()); }).join();
    writing.wait();
    std::fill(got.data(), got.data() + got.span().size(), std::byte{0});
    f.read_exact({}, got.span());
    REQUIRE(std::equal(wanted.begin(), wanted.end(), got.data()));
  }
}

TEST_CASE("uring_engine: whoever reaps, nobody sleeps on") {
  NEEDS_IO_URING();
  test::scratch const folder;
  uring_engine engine;
  { file<>::open(engine.file_system(), folder / "f", O_RDWR | O_CREAT).write_all({}, test::counted(4096)); }
  auto const opened = engine.file_system().open((folder / "f").c_str(), O_RDWR | O_DIRECT, 0);
  if (!opened.ok()) SKIP("this file system refuses O_DIRECT");
  spillway::file_reference const f{{static_cast<int>(opened.value)}, "f"};
  std::vector<std::thread> workers;
  for (std::size_t i = 0; i < 3; ++i) {
    workers.emplace_back([&, i] {  // one polls, two sleep, and they end at different times
      huge_buffer const to{4_KiB};
      for (std::size_t round = 0; round < 2000 * (i + 1); ++round) {
        transfer reading = engine.read(f, {}, to.span());
        if (i == 0) {
          while (!reading.poll()) {
          }
        }
        reading.wait();
      }
    });
  }
  for (std::thread& t : workers) t.join();
  static_cast<void>(engine.file_system().close(f.handle));
}

namespace {
/// A pipe: a read of it lasts until the test lets it end.
struct pipe_pair {
  pipe_pair() { REQUIRE(::pipe2(ends, O_CLOEXEC) == 0); }
  pipe_pair(pipe_pair const&) = delete;
  pipe_pair& operator=(pipe_pair const&) = delete;
  ~pipe_pair() {
    ::close(ends[0]);
    ::close(ends[1]);
  }
  [[nodiscard]] spillway::file_reference reader() const { return {{ends[0]}, "pipe"}; }
  void fill() const { REQUIRE(::write(ends[1], "spillway", 8) == 8); }
  int ends[2] = {-1, -1};
};
}  // namespace

TEST_CASE("uring_engine: poll does not block, and each waiter is woken for its own transfer, in whatever order") {
  NEEDS_IO_URING();
  uring_engine engine;
  for (int const first : {0, 1}) {
    pipe_pair const pipes[2];
    std::byte to[2][8] = {};
    transfer reading[2] = {engine.read(pipes[0].reader(), {}, to[0]), engine.read(pipes[1].reader(), {}, to[1])};
    CHECK(!reading[0].poll());
    CHECK(!reading[0].status());
    std::atomic<int> ended[2] = {0, 0};
    std::thread waiters[2];
    for (int i = 0; i < 2; ++i) {
      waiters[i] = std::thread([&, i] {
        reading[i].wait();
        ended[i] = 1;
      });
      std::this_thread::sleep_for(
          std::chrono::milliseconds{20});  // the first sleeps in the kernel, the second does not
    }
    pipes[first].fill();
    waiters[first].join();
    CHECK(ended[1 - first] == 0);
    pipes[1 - first].fill();
    waiters[1 - first].join();
    CHECK(std::equal(to[0], to[0] + 8, to[1]));
    CHECK(to[0][0] == std::byte{'s'});
  }
}

TEST_CASE("uring_engine: a request that the kernel cancels, as some do when a thread ends, is started again") {
  NEEDS_IO_URING();
  uring_engine engine;
  pipe_pair const pipe;
  std::byte to[8] = {};
  transfer reading = engine.read(pipe.reader(), {}, to);
  io_uring_sync_cancel_reg everything{};
  everything.flags = IORING_ASYNC_CANCEL_ANY | IORING_ASYNC_CANCEL_ALL;
  everything.timeout.tv_sec = everything.timeout.tv_nsec = -1;
  if (::syscall(SYS_io_uring_register, ring_descriptor(), IORING_REGISTER_SYNC_CANCEL, &everything, 1) < 0) {
    pipe.fill();
    SKIP("the kernel has no synchronous cancel");
  }
  CHECK(!reading.poll());
  pipe.fill();
  reading.wait();
  CHECK(to[0] == std::byte{'s'});
}

TEST_CASE("uring_engine: a ring that refuses everything fails its transfers and hangs nobody") {
  NEEDS_IO_URING();
  test::scratch const folder;
  int const status = test::in_child([&] {
    uring_engine engine{{.depth = 4, .request = 4_KiB}};
    auto f = file<>::open(engine.file_system(), folder / "f", O_RDWR | O_CREAT);
    auto const data = test::counted(100 * 4096);
    engine.write(f.reference(), {}, data).wait();
    int const ring = ring_descriptor();
    int const null = ::open("/dev/null", O_RDWR);
    if (ring < 0 || null < 0 || ::dup2(null, ring) != ring) return 77;
    transfer first = engine.write(f.reference(), {}, data);
    transfer second = engine.write(f.reference(), {}, data);
    if (!first.poll() || !second.poll()) return 1;
    if (test::code_of([&] { first.wait(); }).category() != std::system_category()) return 2;
    if (!test::failure_of([&] { second.wait(); })) return 3;
    engine.drain();
    return 0;
  });
  if (status == 77) SKIP("the ring's descriptor was not found");
  CHECK(status == 0);
}
