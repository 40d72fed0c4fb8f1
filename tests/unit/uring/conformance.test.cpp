// SPDX-License-Identifier: Apache-2.0
#include <spillway/testing/memory_tier_conformance.hpp>
#include <spillway/testing/transfer_engine_conformance.hpp>
#include <spillway/tier/file_tier.hpp>
#include <spillway/uring/default_engine.hpp>
#include <spillway/uring/uring_engine.hpp>

#include <string>
#include <vector>

#include "support/catch.hpp"
#include "support/scratch.hpp"

using namespace spillway::literals;
using spillway::uring_engine;
using spillway::testing::check_memory_tier;
using spillway::testing::check_transfer_engine;

namespace {
std::vector<std::string> const none;
}

TEST_CASE("transfer engine conformance: uring_engine") {
  if (!uring_engine::probe().empty()) SKIP("io_uring: " + uring_engine::probe());
  test::scratch const folder;
  CHECK(check_transfer_engine(uring_engine{}, folder.path()) == none);
  CHECK(check_transfer_engine(uring_engine{{.depth = 1, .request = 4_KiB}}, folder.path()) == none);
  CHECK(check_transfer_engine(uring_engine{{.depth = 3, .request = 64_KiB}}, folder.path()) == none);
}

TEST_CASE("transfer engine conformance: default_engine") {
  test::scratch const folder;
  CHECK(check_transfer_engine(spillway::default_engine{}, folder.path()) == none);
}

TEST_CASE("memory tier conformance: file_tier on uring_engine") {
  if (!uring_engine::probe().empty()) SKIP("io_uring: " + uring_engine::probe());
  test::scratch const folder;
  spillway::file_tier direct{uring_engine{}, {.directory = folder.path()}};
  CHECK(check_memory_tier(direct) == none);
  spillway::file_tier buffered{uring_engine{}, {.directory = folder.path(), .direct = spillway::direct_io::off}};
  CHECK(check_memory_tier(buffered) == none);
}
