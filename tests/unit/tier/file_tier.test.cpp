// SPDX-License-Identifier: Apache-2.0
#include <spillway/io/huge_buffer.hpp>
#include <spillway/io/thread_engine.hpp>
#include <spillway/tier/file_tier.hpp>

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "support/catch.hpp"
#include "support/child.hpp"
#include "support/engine_cases.hpp"
#include "support/fault_file_system.hpp"
#include "support/sanitizers.hpp"
#include "support/scratch.hpp"

using namespace spillway::literals;
using spillway::bytes;
using spillway::direct_io;
using spillway::errc;
using spillway::error;
using spillway::file_tier_options;
using spillway::huge_buffer;
using spillway::region;
using faulty_engine = spillway::thread_engine<test::fault_file_system>;
using file_tier = spillway::file_tier<faulty_engine>;

namespace {
file_tier make(file_tier_options options, test::fault_file_system files = test::fault_file_system{}) {
  return file_tier{faulty_engine{{.threads = 2}, std::move(files)}, std::move(options)};
}
bool is(std::optional<error> const& failed, int number) {
  return failed && failed->code() == std::error_code(number, std::system_category());
}
void fill(huge_buffer const& buffer, std::uint64_t seed) {
  auto const bytes_wanted = test::counted(buffer.span().size(), seed);
  std::copy(bytes_wanted.begin(), bytes_wanted.end(), buffer.data());
}
bool same(huge_buffer const& a, huge_buffer const& b) {
  return std::equal(a.span().begin(), a.span().end(), b.span().begin(), b.span().end());
}
bool all_zero(huge_buffer const& a) {
  return std::all_of(a.span().begin(), a.span().end(), [](std::byte b) { return b == std::byte{0}; });
}
bool takes_direct(test::scratch const& folder) {
  int const opened = ::open((folder / "direct").c_str(), O_RDWR | O_CREAT | O_DIRECT, 0600);
  ::unlink((folder / "direct").c_str());
  if (opened >= 0) ::close(opened);
  return opened >= 0;
}
std::string text(std::optional<error> const& failed) { return failed ? failed->what() : ""; }
}  // namespace

TEST_CASE("file_tier: two runs in a directory leave nothing behind, unless asked") {
  test::scratch const folder;
  for (int run = 0; run < 2; ++run) {
    file_tier tier = make({.directory = folder.path()});
    static_cast<void>(tier.allocate(100_KiB));
    static_cast<void>(tier.allocate(100_KiB));
    CHECK(folder.names().size() == 2);
  }
  CHECK(folder.names().empty());
  {
    file_tier tier = make({.directory = folder.path(), .keep = true});
    static_cast<void>(tier.allocate(100_KiB));
    tier.deallocate(tier.allocate(100_KiB));
  }
  REQUIRE(folder.names().size() == 1);
  std::string const kept = folder.names()[0];
  CHECK(kept.ends_with(".kept"));
  { file_tier const tier = make({.directory = folder.path()}); }
  CHECK(folder.names() == std::vector<std::string>{kept});  // no sweep takes it
}

TEST_CASE("file_tier: names are short whatever the directory holds, and files are the owner's alone") {
  test::scratch const folder;
  file_tier tier = make({.directory = folder.path()});
  for (int i = 0; i < 2000; ++i) tier.deallocate(tier.allocate(0_B));
  for (int i = 0; i < 20; ++i) static_cast<void>(tier.allocate(4_KiB));
  for (std::string const& name : folder.names()) {
    CHECK(name.size() < 80);
    struct stat about {};
    REQUIRE(::stat((folder / name).c_str(), &about) == 0);
    CHECK((about.st_mode & 0777) == 0600);
    CHECK(about.st_size == 4096);
    CHECK(about.st_blocks * 512 >= 4096);  // the blocks are there before the first write
  }
}

TEST_CASE("file_tier: files of a killed process are removed, those of a living one are not") {
  test::scratch const folder;
  // Before this process has a tier, and so threads: the thread sanitizer wants it so.
  int const killed = test::in_child([&] {
    file_tier tier = make({.directory = folder.path()});
    static_cast<void>(tier.allocate(64_KiB));
    static_cast<void>(tier.allocate(64_KiB));
    ::raise(SIGKILL);
    return 0;
  });
  REQUIRE(killed == 1000 + SIGKILL);
  CHECK(folder.names().size() == 2);
  // Others' files, and names that only look like ours.
  std::string const foreign[] = {"spillway-12-0123456789abcdef-1.spill.txt", "spillway-x-0123456789abcdef-1.spill",
                                 "spillway-12-0123456789abcde-1.spill", "spillway-12-0123456789abcdef-.spill",
                                 "data.spill"};
  for (std::string const& name : foreign) std::ofstream(folder / name) << "mine";
  std::ofstream(folder / "spillway-12-0123456789abcdef-3.new");  // its maker died before it was locked
  file_tier living = make({.directory = folder.path()});
  CHECK(living.report().swept == 3);
  CHECK(folder.names().size() == std::size(foreign));
  region const r = living.allocate(8_KiB);
  huge_buffer const wanted{8_KiB};
  fill(wanted, 1);
  living.write(r, {}, wanted.span()).wait();
  file_tier const next = make({.directory = folder.path()});
  CHECK(next.report().swept == 0);
  CHECK(folder.names().size() == std::size(foreign) + 1);
  huge_buffer const got{8_KiB};
  living.read(r, {}, got.span()).wait();
  CHECK(same(got, wanted));
}

TEST_CASE("file_tier: a planted link under one of its names is neither followed nor counted") {
  test::scratch const folder;
  std::ofstream(folder / "precious") << "precious";
  std::filesystem::create_symlink(folder / "precious", folder / "spillway-1-0123456789abcdef-1.spill");
  file_tier const tier = make({.directory = folder.path()});
  CHECK(tier.report().swept == 0);
  CHECK(std::filesystem::file_size(folder / "precious") == 8);
}

TEST_CASE("file_tier: a left-over file is never read as valid: a fresh region is zeros") {
  test::scratch const folder;
  for (int run = 0; run < 2; ++run) {
    file_tier tier = make({.directory = folder.path()});
    region const r = tier.allocate(1_MiB);
    huge_buffer const buffer{1_MiB};
    fill(buffer, 2);
    tier.read(r, {}, buffer.span()).wait();
    CHECK(all_zero(buffer));
    fill(buffer, 3);
    tier.write(r, {}, buffer.span()).wait();
  }
}

TEST_CASE("file_tier: where blocks cannot be promised, zeros are written") {
  test::scratch const folder;
  test::fault_file_system files;
  files.plan().set(test::call::allocate, {.error = EOPNOTSUPP});
  file_tier tier = make({.directory = folder.path()}, files);
  region const r = tier.allocate(3_MiB + 5_B);
  struct stat about {};
  REQUIRE(::stat((folder / folder.names()[0]).c_str(), &about) == 0);
  CHECK(about.st_size == (3 << 20) + 4096);
  CHECK(about.st_blocks * 512 >= 3 << 20);
  tier.deallocate(r);
  files.plan().set(test::call::write, {.error = ENOSPC});
  CHECK(is(test::failure_of([&] { static_cast<void>(tier.allocate(1_MiB)); }), ENOSPC));
  CHECK(folder.names().empty());
}

TEST_CASE("file_tier: a full file system is met at allocate, with path and size, and leaves nothing") {
  test::scratch const folder;
  test::fault_file_system files;
  file_tier tier = make({.directory = folder.path()}, files);
  files.plan().set(test::call::allocate, {.times = 1, .error = ENOSPC});
  auto const failed = test::failure_of([&] { static_cast<void>(tier.allocate(5000_B)); });
  REQUIRE(is(failed, ENOSPC));
  CHECK(failed->about().path.starts_with(folder.path()));
  CHECK(failed->about().wanted == 8192_B);
  CHECK(folder.names().empty());
  tier.deallocate(tier.allocate(5000_B));  // usable afterwards
}

TEST_CASE("file_tier: the capacity bounds all regions together, in whole blocks") {
  test::scratch const folder;
  file_tier tier = make({.directory = folder.path(), .capacity = 16_KiB});
  CHECK(tier.capacity() == 16_KiB);
  region const r = tier.allocate(4097_B);
  auto const failed = test::failure_of([&] { static_cast<void>(tier.allocate(8193_B)); });
  REQUIRE(failed);
  CHECK(failed->code() == errc::capacity_exceeded);
  CHECK(failed->about().wanted == 8193_B);
  CHECK(failed->about().got == 8_KiB);
  tier.deallocate(r);
  tier.deallocate(tier.allocate(16_KiB));
  CHECK_THROWS_AS(tier.allocate(bytes{~0ULL}), error);
  CHECK_THROWS_AS(make({.directory = folder.path(), .capacity = 10_KiB}).allocate(9_KiB), error);  // 12 KiB on disk
}

TEST_CASE("file_tier: an unaligned size is rounded up by the tier, and its padding can be moved") {
  test::scratch const folder;
  file_tier tier = make({.directory = folder.path()});
  region const r = tier.allocate(5000_B);
  CHECK(r.size == 5000_B);
  huge_buffer const wanted{8_KiB};
  huge_buffer const got{8_KiB};
  fill(wanted, 4);
  tier.write(r, {}, wanted.span()).wait();
  tier.read(r, {}, got.span()).wait();
  CHECK(same(got, wanted));
}

TEST_CASE("file_tier: a region of no bytes has no file") {
  test::scratch const folder;
  file_tier tier = make({.directory = folder.path()});
  region const r = tier.allocate(0_B);
  tier.write(r, {}, {}).wait();
  tier.read(r, {}, {}).wait();
  CHECK(folder.names().empty());
  tier.deallocate(r);
}

TEST_CASE("file_tier: misaligned and outside ranges are bugs of the caller") {
  if (test::thread_sanitizer) SKIP("fork beside threads");
  test::scratch const folder;
  file_tier tier = make({.directory = folder.path()});
  region const r = tier.allocate(8_KiB);
  huge_buffer const buffer{16_KiB};
  CHECK(test::aborts([&] { static_cast<void>(tier.read(r, 1_B, buffer.span().first(4096))); }));
  CHECK(test::aborts([&] { static_cast<void>(tier.read(r, {}, buffer.span().first(4095))); }));
  CHECK(test::aborts([&] { static_cast<void>(tier.write(r, {}, buffer.span().subspan(1, 4096))); }));
  CHECK(test::aborts([&] { static_cast<void>(tier.write(r, {}, buffer.span().first(12288))); }));
  CHECK(test::aborts([&] { static_cast<void>(tier.write(r, 8_KiB, buffer.span().first(4096))); }));
  CHECK(test::aborts([&] { static_cast<void>(tier.write({r.id + 1, r.size}, {}, buffer.span().first(4096))); }));
  CHECK(test::aborts([&] { tier.deallocate({r.id + 1, r.size}); }));
}

TEST_CASE("file_tier: a refused O_DIRECT is buffered and said so, or an error when it is required") {
  test::scratch const folder;
  test::fault_file_system files;
  files.plan().refuse_direct(true);
  file_tier tier = make({.directory = folder.path()}, files);
  CHECK(!tier.report().direct);
  CHECK(tier.report().direct_reason.find("Invalid argument") != std::string::npos);
  region const r = tier.allocate(8_KiB);
  huge_buffer const wanted{8_KiB};
  huge_buffer const got{8_KiB};
  fill(wanted, 5);
  tier.write(r, {}, wanted.span()).wait();
  tier.read(r, {}, got.span()).wait();
  CHECK(same(got, wanted));
  auto const failed = test::failure_of(
      [&] { static_cast<void>(make({.directory = folder.path(), .direct = direct_io::required}, files)); });
  REQUIRE(failed);
  CHECK(failed->code() == errc::unsupported);
  CHECK(failed->about().path == folder.path());
  CHECK(text(failed).find("Invalid argument") != std::string::npos);
  CHECK(folder.names().size() == 1);  // the living tier's: the refusal left none
}

TEST_CASE(
    "file_tier: a file system that accepts O_DIRECT and refuses the transfer, or wants more alignment, is buffered") {
  test::scratch const folder;
  test::fault_file_system files;
  files.plan().set(test::call::write, {.times = 1, .error = EINVAL});
  if (!takes_direct(folder)) SKIP("this file system refuses O_DIRECT");
  file_tier const refused = make({.directory = folder.path()}, files);
  CHECK(!refused.report().direct);
  CHECK(refused.report().direct_reason.find("write") != std::string::npos);
  files.plan().clear();
  files.plan().set(test::call::direct_alignment, {.error = EOPNOTSUPP});
  CHECK(!make({.directory = folder.path()}, files).report().direct);
}

TEST_CASE("file_tier: the report names engine, directory and mode") {
  test::scratch const folder;
  auto const report = make({.directory = folder.path(), .direct = direct_io::off}).report();
  CHECK(report.engine.name == "thread");
  CHECK(report.directory == folder.path());
  CHECK(!report.direct);
  CHECK(report.direct_reason == "off");
  file_tier tier = make({.directory = folder.path()});
  if (!takes_direct(folder)) SKIP("this file system refuses O_DIRECT");
  CHECK(tier.report().direct);
  CHECK(tier.report().direct_reason == "probed: a direct write works");
  CHECK(tier.report().alignment >= 1_B);
  CHECK(tier.report().alignment <= file_tier::traits.alignment);
}

TEST_CASE("file_tier: a directory that is missing, is a file, or is not given is refused by name") {
  test::scratch const folder;
  std::ofstream(folder / "file") << "x";
  auto failed = test::failure_of([&] { static_cast<void>(make({.directory = folder / "absent"})); });
  REQUIRE(is(failed, ENOENT));
  CHECK(failed->about().path == folder / "absent");
  failed = test::failure_of([&] { static_cast<void>(make({.directory = folder / "file"})); });
  REQUIRE(is(failed, ENOTDIR));
  CHECK(failed->about().path == folder / "file");
  CHECK(test::code_of([&] { static_cast<void>(make({.directory = ""})); }) == errc::invalid_option);
}

TEST_CASE("file_tier: a directory that cannot be written is met at construction, with path, errno and user") {
  test::scratch const folder;
  test::fault_file_system files;
  files.plan().set(test::call::open, {.from = 2, .error = EACCES});  // the first opens the directory
  auto failed = test::failure_of([&] { static_cast<void>(make({.directory = folder.path()}, files)); });
  REQUIRE(is(failed, EACCES));
  CHECK(failed->about().path.starts_with(folder.path()));
  CHECK(text(failed).find("user id " + std::to_string(::geteuid())) != std::string::npos);
  if (::geteuid() != 0) return;
  // And with the machine's own permissions, which root must give up to meet.
  int const status = test::in_child([&] {
    if (::chmod(folder.path().c_str(), 0755) != 0 || ::setuid(65534) != 0) return 77;
    auto const refused = test::failure_of([&] { static_cast<void>(make({.directory = folder.path()})); });
    if (!is(refused, EACCES)) return 1;
    return text(refused).find("user id 65534") != std::string::npos ? 0 : 2;
  });
  CHECK((status == 0 || status == 77));
}

TEST_CASE("file_tier: flush syncs what was written since the last one, each file once") {
  test::scratch const folder;
  test::fault_file_system files;
  file_tier tier = make({.directory = folder.path()}, files);
  region const a = tier.allocate(4_KiB);
  region const b = tier.allocate(4_KiB);
  region const c = tier.allocate(4_KiB);
  huge_buffer const buffer{4_KiB};
  auto const syncs = [&] { return files.plan().count(test::call::sync_data); };
  tier.flush().wait();
  CHECK(syncs() == 0);
  tier.write(a, {}, buffer.span()).wait();
  tier.write(a, {}, buffer.span()).wait();
  files.plan().set(test::call::write, {.delay_ms = 100});
  auto running = tier.write(b, {}, buffer.span());
  tier.read(c, {}, huge_buffer{4_KiB}.span()).wait();
  tier.flush().wait();
  CHECK(running.poll());
  CHECK(syncs() == 2);
  tier.flush().wait();
  CHECK(syncs() == 2);
}

TEST_CASE("file_tier: a failed sync is reported, and again at every later flush") {
  test::scratch const folder;
  test::fault_file_system files;
  file_tier tier = make({.directory = folder.path()}, files);
  region const r = tier.allocate(4_KiB);
  huge_buffer const buffer{4_KiB};
  tier.write(r, {}, buffer.span()).wait();
  files.plan().set(test::call::sync_data, {.times = 1, .error = EIO});
  for (int i = 0; i < 3; ++i) {
    auto const failed = test::failure_of([&] { tier.flush().wait(); });
    REQUIRE(is(failed, EIO));
    CHECK(failed->about().path.starts_with(folder.path()));
  }
  CHECK(files.plan().count(test::call::sync_data) == 1);
}

TEST_CASE("file_tier: a failed write reaches the token with path, offset and length") {
  test::scratch const folder;
  test::fault_file_system files;
  file_tier tier = make({.directory = folder.path()}, files);
  region const r = tier.allocate(16_KiB);
  huge_buffer const buffer{8_KiB};
  files.plan().set(test::call::write, {.error = EIO});
  auto writing = tier.write(r, 4_KiB, buffer.span());
  auto const failed = test::failure_of([&] { writing.wait(); });
  REQUIRE(is(failed, EIO));
  CHECK(failed->about().offset == 4096);
  CHECK(failed->about().wanted == 8_KiB);
  CHECK(failed->about().path.ends_with(".spill"));
}

TEST_CASE("file_tier: its end waits for writes in flight, and tokens may end later") {
  test::scratch const folder;
  huge_buffer const buffer{4_MiB};
  fill(buffer, 6);
  std::vector<spillway::transfer> running;
  {
    file_tier tier = make({.directory = folder.path(), .keep = true});
    region const r = tier.allocate(64_MiB);
    for (std::uint64_t i = 0; i < 16; ++i) running.push_back(tier.write(r, i * 4_MiB, buffer.span()));
    file_tier const moved = std::move(tier);
  }
  for (auto& t : running) CHECK(t.poll());
  std::ifstream kept(folder / folder.names().at(0), std::ios::binary);
  std::vector<char> last(4U << 20U);
  kept.seekg(60 << 20);
  kept.read(last.data(), static_cast<std::streamsize>(last.size()));
  CHECK(std::equal(last.begin(), last.end(), reinterpret_cast<char const*>(buffer.data())));
}

TEST_CASE("file_tier: descriptors and space come back with every deallocate") {
  test::scratch const folder;
  test::fault_file_system files;
  {
    file_tier tier = make({.directory = folder.path(), .capacity = 1_MiB}, files);
    for (int i = 0; i < 300; ++i) tier.deallocate(tier.allocate(1_MiB));
    CHECK(folder.names().empty());
  }
  CHECK(files.plan().count(test::call::open) == files.plan().count(test::call::close));
}
