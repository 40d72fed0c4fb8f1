// SPDX-License-Identifier: Apache-2.0
#include <spillway/io/posix_file_system.hpp>

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <string>
#include <vector>

#include "support/catch.hpp"
#include "support/scratch.hpp"

using handle = spillway::open_handle;  // <fcntl.h> has a ::open_handle
using spillway::posix_file_system;

namespace {
handle open_file(std::string const& path, int flags) {
  spillway::call_result const opened = posix_file_system::open(path.c_str(), flags, 0600);
  REQUIRE(opened.ok());
  return {static_cast<int>(opened.value)};
}
}  // namespace

TEST_CASE("posix_file_system: a failed call returns -errno") {
  test::scratch const folder;
  CHECK(posix_file_system::open((folder / "absent").c_str(), O_RDONLY, 0).error() == ENOENT);
  CHECK(posix_file_system::unlink((folder / "absent").c_str()).error() == ENOENT);
  CHECK(posix_file_system::remove_directory((folder / "absent").c_str()).error() == ENOENT);
  CHECK(posix_file_system::close({-1}).error() == EBADF);
  CHECK(posix_file_system::size({-1}).error() == EBADF);
  CHECK(posix_file_system::sync({-1}).error() == EBADF);
  CHECK(posix_file_system::sync_data({-1}).error() == EBADF);
  std::vector<std::string> names;
  CHECK(posix_file_system::list((folder / "absent").c_str(), names).error() == ENOENT);
}

TEST_CASE("posix_file_system: a handle does not pass to programs that are started") {
  test::scratch const folder;
  handle const f = open_file(folder / "f", O_RDWR | O_CREAT);
  CHECK((::fcntl(f.id, F_GETFD) & FD_CLOEXEC) != 0);
  CHECK(posix_file_system::close(f).ok());
}

TEST_CASE("posix_file_system: allocate makes blocks and a size, truncate cuts") {
  test::scratch const folder;
  handle const f = open_file(folder / "f", O_RDWR | O_CREAT);
  CHECK(posix_file_system::allocate(f, 0).ok());
  REQUIRE(posix_file_system::allocate(f, 1U << 20U).ok());
  CHECK(posix_file_system::size(f).value == 1 << 20);
  struct stat about {};
  REQUIRE(::fstat(f.id, &about) == 0);
  CHECK(about.st_blocks * 512 >= 1 << 20);
  CHECK(posix_file_system::truncate(f, 100).ok());
  CHECK(posix_file_system::size(f).value == 100);
  CHECK(posix_file_system::close(f).ok());
}

TEST_CASE("posix_file_system: a lock is exclusive, does not wait, and ends with the handle") {
  test::scratch const folder;
  handle const first = open_file(folder / "f", O_RDWR | O_CREAT);
  handle const second = open_file(folder / "f", O_RDWR);
  CHECK(posix_file_system::lock(first).ok());
  CHECK(posix_file_system::lock(second).error() == EWOULDBLOCK);
  CHECK(posix_file_system::close(first).ok());
  CHECK(posix_file_system::lock(second).ok());
  CHECK(posix_file_system::close(second).ok());
}

TEST_CASE("posix_file_system: rename_exclusive never replaces, not even an empty file") {
  test::scratch const folder;
  std::string const from = folder / "from";
  std::string const to = folder / "to";
  CHECK(posix_file_system::close(open_file(from, O_RDWR | O_CREAT)).ok());
  CHECK(posix_file_system::close(open_file(to, O_RDWR | O_CREAT)).ok());
  CHECK(posix_file_system::rename_exclusive(from.c_str(), to.c_str()).error() == EEXIST);
  CHECK(folder.names() == std::vector<std::string>{"from", "to"});
  CHECK(posix_file_system::unlink(to.c_str()).ok());
  CHECK(posix_file_system::rename_exclusive(from.c_str(), to.c_str()).ok());
  CHECK(folder.names() == std::vector<std::string>{"to"});
  CHECK(posix_file_system::rename(to.c_str(), from.c_str()).ok());
  CHECK(folder.names() == std::vector<std::string>{"from"});
}

TEST_CASE("posix_file_system: list gives every name, without . and ..") {
  test::scratch const folder;
  CHECK(posix_file_system::make_directory((folder / "d").c_str(), 0700).ok());
  CHECK(posix_file_system::make_directory((folder / "d").c_str(), 0700).error() == EEXIST);
  CHECK(posix_file_system::close(open_file(folder / ".hidden", O_RDWR | O_CREAT)).ok());
  std::vector<std::string> names{"before"};
  CHECK(posix_file_system::list(folder.path().c_str(), names).value == 2);
  std::sort(names.begin(), names.end());
  CHECK(names == std::vector<std::string>{".hidden", "before", "d"});
}

TEST_CASE("posix_file_system: the direct alignment is a power of two") {
  test::scratch const folder;
  spillway::call_result const opened =
      posix_file_system::open((folder / "f").c_str(), O_RDWR | O_CREAT | O_DIRECT, 0600);
  if (!opened.ok()) SKIP("this file system refuses O_DIRECT");
  handle const f{static_cast<int>(opened.value)};
  std::int64_t const alignment = posix_file_system::direct_alignment(f).value;
  CHECK(alignment >= 1);
  CHECK((alignment & (alignment - 1)) == 0);
  CHECK(posix_file_system::close(f).ok());
}
