// SPDX-License-Identifier: Apache-2.0
#include <spillway/io/huge_buffer.hpp>

#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "support/catch.hpp"
#include "support/child.hpp"
#include "support/sanitizers.hpp"

using namespace spillway::literals;
using spillway::bytes;
using spillway::huge_buffer;
using spillway::huge_buffer_report;
using spillway::huge_pages;

namespace {
bytes resident() {
  std::ifstream statm("/proc/self/statm");
  std::uint64_t size = 0;
  std::uint64_t pages = 0;
  statm >> size >> pages;
  return bytes{pages * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE))};
}
bytes anonymous_huge_pages() {
  std::ifstream rollup("/proc/self/smaps_rollup");
  for (std::string line; std::getline(rollup, line);) {
    if (line.rfind("AnonHugePages:", 0) == 0) return bytes{std::stoull(line.substr(14)) << 10U};
  }
  return {};
}
/// True when touching it ends a process.
bool kills(std::byte volatile* at) {
  return test::in_child([at] {
           ::close(2);  // a sanitizer's report is expected
           *at = std::byte{1};
           return 0;
         }) != 0;
}
}  // namespace

TEST_CASE("huge_buffer: 257 MiB take 258 MiB, resident from the start, and give them back") {
  if (test::thread_sanitizer) SKIP("the thread sanitizer's own memory is resident too");
  bytes const before = resident();
  {
    huge_buffer const buffer{257_MiB};
    CHECK(buffer.size() == 257_MiB);
    CHECK(buffer.held() == 258_MiB);
    bytes const grown = resident() - before;
    CHECK(grown >= 257_MiB);
    CHECK(grown <= 259_MiB);
    huge_buffer_report const report = buffer.report();
    CHECK(report.asked == 257_MiB);
    CHECK(report.held == 258_MiB);
  }
  CHECK(resident() < before + 2_MiB);
}

TEST_CASE("huge_buffer: zeroed, aligned to 2 MiB, or to a page when it is small") {
  for (std::uint64_t const n : {1ULL, 4096ULL, 100000ULL, 2ULL << 20U, (5ULL << 20U) + 1}) {
    huge_buffer const buffer{bytes{n}};
    std::uint64_t const alignment = n < huge_buffer::page.count ? 4096 : huge_buffer::page.count;
    CHECK(reinterpret_cast<std::uintptr_t>(buffer.data()) % alignment == 0);
    CHECK(buffer.span().size() == n);
    CHECK(buffer.held() == spillway::round_up(bytes{n}, bytes{alignment}));
    CHECK(std::all_of(buffer.span().begin(), buffer.span().end(), [](std::byte b) { return b == std::byte{0}; }));
    std::fill(buffer.span().begin(), buffer.span().end(), std::byte{7});
  }
}

TEST_CASE("huge_buffer: the quantum bounds what is held over the size") {
  huge_buffer const buffer{(3_MiB) + 1_B, {.quantum = 4_KiB}};
  CHECK(buffer.held() == 3_MiB + 4_KiB);
  CHECK(reinterpret_cast<std::uintptr_t>(buffer.data()) % huge_buffer::page.count == 0);
  CHECK_THROWS_AS((huge_buffer{1_MiB, {.quantum = 100_B}}), spillway::error);
  CHECK_THROWS_AS((huge_buffer{1_MiB, {.quantum = 12_KiB}}), spillway::error);
}

TEST_CASE("huge_buffer: the report counts this buffer's huge pages, or says why there are none") {
  std::vector<huge_buffer> neighbours;
  for (int i = 0; i < 4; ++i) neighbours.emplace_back(4_MiB);
  for (huge_buffer const& buffer : neighbours) {
    huge_buffer_report const report = buffer.report();
    CHECK(report.huge <= 4_MiB);  // not its neighbours' too
    switch (report.outcome) {
      case huge_pages::all:
        CHECK(report.huge == 4_MiB);
        CHECK(report.reason.empty());
        break;
      case huge_pages::some:
        CHECK(report.huge > 0_B);
        CHECK(!report.reason.empty());
        break;
      case huge_pages::none:
      case huge_pages::unknown:
        CHECK(report.huge == 0_B);
        CHECK(!report.reason.empty());
        break;
    }
  }
  // The kernel's own sum over the process agrees.
  bytes counted{};
  for (huge_buffer const& buffer : neighbours) counted += buffer.report().huge;
  bytes const before = anonymous_huge_pages();
  neighbours.clear();
  CHECK(before - anonymous_huge_pages() == counted);
  std::ifstream setting("/sys/kernel/mm/transparent_hugepage/enabled");
  std::string text;
  std::getline(setting, text);
  if (text.find("[never]") != std::string::npos) {
    CHECK(huge_buffer{4_MiB}.report().reason == "transparent huge pages: never");
  }
  huge_buffer_report const small = huge_buffer{100_KiB}.report();
  CHECK(small.outcome == huge_pages::none);
  CHECK(small.reason == "smaller than a huge page");
}

TEST_CASE("huge_buffer: an empty one holds nothing") {
  huge_buffer const buffer{0_B};
  CHECK(buffer.span().empty());
  CHECK(buffer.held() == 0_B);
}

TEST_CASE("huge_buffer: moves keep the memory and free the target's") {
  huge_buffer a{2_MiB};
  a.data()[5] = std::byte{9};
  std::byte* const where = a.data();
  huge_buffer b = std::move(a);
  CHECK(b.data() == where);
  CHECK(a.span().empty());
  huge_buffer c{4_MiB};
  bytes const before = resident();
  c = std::move(b);
  CHECK(c.data()[5] == std::byte{9});
  CHECK(c.size() == 2_MiB);
  CHECK(resident() + 3_MiB < before);
}

TEST_CASE("huge_buffer: the bytes before it and after it cannot be touched") {
  if (test::thread_sanitizer) SKIP("fork and a fault under the thread sanitizer");
  huge_buffer const buffer{2_MiB};
  CHECK(kills(buffer.data() + buffer.held().count));
  CHECK(kills(buffer.data() - 1));
  CHECK(!kills(buffer.data()));
}

TEST_CASE("huge_buffer: a refused mapping throws and names the size") {
  try {
    huge_buffer const buffer{bytes{1ULL << 60U}};
    FAIL("2^60 bytes were mapped");
  } catch (spillway::error const& failed) {
    CHECK(failed.code() == std::errc::not_enough_memory);
    CHECK(failed.about().wanted == bytes{1ULL << 60U});
  }
  CHECK_THROWS_AS(huge_buffer{bytes{~0ULL}}, spillway::error);
}
