// SPDX-License-Identifier: Apache-2.0
#include <spillway/io/file.hpp>

#include <fcntl.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "support/catch.hpp"
#include "support/failures.hpp"
#include "support/fault_file_system.hpp"
#include "support/scratch.hpp"

using namespace spillway::literals;
using spillway::bytes;
using spillway::errc;
using spillway::error;
using file = spillway::file<test::fault_file_system>;

namespace {
using test::failure_of;
std::vector<std::byte> counted(std::size_t n) {
  std::vector<std::byte> out(n);
  for (std::size_t i = 0; i < n; ++i) out[i] = static_cast<std::byte>(i * 7 + i / 256);
  return out;
}
bool is(std::error_code code, int number) { return code == std::error_code(number, std::system_category()); }
}  // namespace

TEST_CASE("file: a failed open names call, path and errno") {
  test::scratch const folder;
  test::fault_file_system files;
  auto const failed = failure_of([&] { static_cast<void>(file::open(files, folder / "absent", O_RDONLY)); });
  REQUIRE(failed);
  CHECK(is(failed->code(), ENOENT));
  CHECK(failed->about().path == folder / "absent");
  CHECK(std::string(failed->what()).find("open") != std::string::npos);
  CHECK(std::string(failed->what()).find("No such file") != std::string::npos);
}

TEST_CASE("file: short counts are continued and EINTR is retried") {
  test::scratch const folder;
  test::fault_file_system files;
  files.plan().set(test::call::write, {.every = 2, .at_most = 1000});
  files.plan().set(test::call::read, {.every = 2, .at_most = 999});
  file f = file::open(files, folder / "f", O_RDWR | O_CREAT);
  auto const wanted = counted(100000);
  f.write_all(12_B, wanted);
  std::vector<std::byte> got(wanted.size());
  f.read_exact(12_B, got);
  CHECK(got == wanted);
  files.plan().set(test::call::read, {.every = 2, .error = EINTR});
  files.plan().set(test::call::write, {.every = 2, .error = EINTR});
  f.write_all(0_B, wanted);
  f.read_exact(0_B, got);
  CHECK(got == wanted);
}

TEST_CASE("file: a read over the end is short_transfer and says what was wanted and got") {
  test::scratch const folder;
  test::fault_file_system files;
  file f = file::open(files, folder / "f", O_RDWR | O_CREAT);
  f.write_all(0_B, counted(100));
  std::vector<std::byte> got(60);
  auto const failed = failure_of([&] { f.read_exact(50_B, got); });
  REQUIRE(failed);
  CHECK(failed->code() == errc::short_transfer);
  CHECK(failed->about().path == folder / "f");
  CHECK(failed->about().offset == 50);
  CHECK(failed->about().wanted == 60_B);
  CHECK(failed->about().got == 50_B);
  f.read_exact(100_B, {});  // nothing, at the end
}

TEST_CASE("file: a write that stops names how far it came and why") {
  test::scratch const folder;
  test::fault_file_system files;
  file f = file::open(files, folder / "f", O_RDWR | O_CREAT);
  auto const wanted = counted(5000);
  files.plan().set(test::call::write, {.from = 1, .every = 1, .times = 1, .at_most = 4096});
  f.write_all(0_B, wanted);
  files.plan().set(test::call::write, {.from = 1, .error = ENOSPC});
  auto failed = failure_of([&] { f.write_all(8192_B, wanted); });
  REQUIRE(failed);
  CHECK(is(failed->code(), ENOSPC));
  CHECK(failed->about().offset == 8192);
  CHECK(failed->about().wanted == 5000_B);
  CHECK(failed->about().got == 0_B);
  files.plan().set(test::call::write, {.at_most = 0});  // a call that moves nothing and has no error
  failed = failure_of([&] { f.write_all(0_B, wanted); });
  REQUIRE(failed);
  CHECK(failed->code() == errc::short_transfer);
}

TEST_CASE("file: every other call names path and errno when it fails") {
  test::scratch const folder;
  test::fault_file_system files;
  file f = file::open(files, folder / "f", O_RDWR | O_CREAT);
  auto const check = [&](test::call kind, auto call) {
    files.plan().set(kind, {.error = EIO});
    auto const failed = failure_of(call);
    files.plan().clear();
    REQUIRE(failed);
    CHECK(is(failed->code(), EIO));
    CHECK(failed->about().path == folder / "f");
  };
  check(test::call::size, [&] { static_cast<void>(f.size()); });
  check(test::call::allocate, [&] { f.allocate(1_MiB); });
  check(test::call::truncate, [&] { f.truncate(0_B); });
  check(test::call::sync, [&] { f.sync(); });
  check(test::call::sync_data, [&] { f.sync_data(); });
  check(test::call::lock, [&] { f.lock(); });
  check(test::call::rename_exclusive, [&] { f.rename_exclusive(folder / "g"); });
  check(test::call::close, [&] { f.close(); });
  CHECK(!f.valid());  // closed all the same
}

TEST_CASE("file: a lock that another holds is busy") {
  test::scratch const folder;
  test::fault_file_system files;
  file first = file::open(files, folder / "f", O_RDWR | O_CREAT);
  file second = file::open(files, folder / "f", O_RDWR);
  first.lock();
  auto const failed = failure_of([&] { second.lock(); });
  REQUIRE(failed);
  CHECK(failed->code() == errc::busy);
  first.close();
  second.lock();
}

TEST_CASE("file: its reference survives a move, also with a short path") {
  test::fault_file_system files;
  file f = file::open(files, "/", O_RDONLY);
  spillway::file_reference const before = f.reference();
  file moved = std::move(f);
  CHECK(moved.reference().path == before.path);
  CHECK(moved.reference().handle.id == before.handle.id);
  CHECK(!f.valid());
}

TEST_CASE("file: rename_exclusive changes name and path, and refuses a name that is taken") {
  test::scratch const folder;
  test::fault_file_system files;
  file f = file::open(files, folder / "a", O_RDWR | O_CREAT);
  file other = file::open(files, folder / "b", O_RDWR | O_CREAT);
  auto const failed = failure_of([&] { f.rename_exclusive(folder / "b"); });
  REQUIRE(failed);
  CHECK(is(failed->code(), EEXIST));
  f.rename_exclusive(folder / "c");
  CHECK(f.path() == folder / "c");
  CHECK(folder.names() == std::vector<std::string>{"b", "c"});
}

TEST_CASE("file: every handle is closed once") {
  test::scratch const folder;
  test::fault_file_system files;
  {
    file a = file::open(files, folder / "a", O_RDWR | O_CREAT);
    file b = file::open(files, folder / "b", O_RDWR | O_CREAT);
    a = std::move(b);
    a.close();
    a.close();
    file const c = file::open(files, folder / "a", O_RDWR);
  }
  CHECK(files.plan().count(test::call::open) == 3);
  CHECK(files.plan().count(test::call::close) == 3);
}
