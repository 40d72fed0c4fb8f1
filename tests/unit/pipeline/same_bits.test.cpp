// SPDX-License-Identifier: Apache-2.0
#include <spillway/tier/device_tier.hpp>
#include <spillway/tier/file_tier.hpp>
#include <spillway/tier/host_tier.hpp>
#include <spillway/tier/tier_stack.hpp>

#include "support/catch.hpp"
#include "support/scratch.hpp"
#include "support/train.hpp"

using namespace spillway::literals;
using test::cut;
using test::train;

namespace {
test::snapshot const& reference() {
  static test::snapshot const made = train(spillway::host_tier{64_MiB});
  return made;
}
spillway::file_tier<> files(test::scratch const& folder, spillway::direct_io direct = spillway::direct_io::automatic) {
  return {spillway::thread_engine<>{{.threads = 2}}, {.directory = folder.path(), .direct = direct}};
}
}  // namespace

TEST_CASE("same bits: three steps change every array of every tensor that had gradients") {
  test::snapshot const before = train(spillway::host_tier{64_MiB}, cut(65536), test::two_groups(), {}, 0);
  auto const& layout = test::training_layout();
  for (std::size_t t = 0; t < layout.size(); ++t) {
    for (std::size_t a = 0; a < 3; ++a) {
      CHECK(reference().arrays[t][a].size() == layout.elements(t) * 4);
      CHECK((layout.elements(t) == 0 || reference().arrays[t][a] != before.arrays[t][a]));
    }
    CHECK((layout.elements(t) == 0 || reference().parameters[t] != before.parameters[t]));
  }
  CHECK(reference().counters == std::vector<std::uint64_t>{3, 3, 1, 3, 3, 3, 3});
}

TEST_CASE("same bits: any chunk size and number of slots, state in files") {
  test::scratch const folder;
  for (std::uint64_t const chunk : {4096U, 65536U, 1U << 20U, 3U * 7U * 1024U}) {
    for (unsigned const slots : {2U, 4U, 8U}) {
      CAPTURE(chunk, slots);
      CHECK((train(files(folder), cut(chunk, slots)) == reference()));
    }
  }
}

TEST_CASE("same bits: any read-ahead") {
  test::scratch const folder;
  for (unsigned depth = 0; depth <= 8; ++depth) {
    CAPTURE(depth);
    spillway::sequential_scheduler const scheduler{.depth = depth};
    CHECK((train(files(folder), cut(21504, 4), test::two_groups(), scheduler) == reference()));
  }
}

TEST_CASE("same bits: any share in host memory and in files") {
  test::scratch const folder;
  for (double const share : {0.0, 0.3, 1.0}) {
    CAPTURE(share);
    spillway::tier_stack stack{spillway::share{share, spillway::host_tier{64_MiB}},
                               spillway::share{1 - share, files(folder)}};
    CHECK((train(std::move(stack), cut(21504)) == reference()));
  }
}

TEST_CASE("same bits: one thread, two, or five") {
  for (unsigned const threads : {1U, 2U, 5U}) {
    CAPTURE(threads);
    auto options = cut(65536);
    options.pool = std::make_shared<spillway::thread_pool>(threads);
    CHECK((train(spillway::host_tier{64_MiB}, options, test::two_groups(threads)) == reference()));
  }
}

TEST_CASE("same bits: state in files that do not bypass the page cache") {
  test::scratch const folder;
  CHECK((train(files(folder, spillway::direct_io::off), cut(21504)) == reference()));
}

TEST_CASE("same bits: state in device memory") {
  spillway::host_device other({.memory = 32_MiB, .link_bytes_per_second = 2e9});
  CHECK((train(spillway::device_tier{other}, cut(21504)) == reference()));
}
