// SPDX-License-Identifier: Apache-2.0
#include <spillway/tier/file_tier.hpp>
#include <spillway/tier/host_tier.hpp>
#include <spillway/tier/tier_stack.hpp>
#include <spillway/uring/uring_engine.hpp>

#include "support/catch.hpp"
#include "support/scratch.hpp"
#include "support/train.hpp"

using namespace spillway::literals;
using spillway::uring_engine;
using test::cut;
using test::train;

TEST_CASE("same bits: any chunk size, number of slots and share, state in files moved by io_uring") {
  if (!uring_engine::probe().empty()) SKIP("io_uring: " + uring_engine::probe());
  test::snapshot const reference = train(spillway::host_tier{64_MiB});
  test::scratch const folder;
  auto const files = [&] { return spillway::file_tier{uring_engine{}, {.directory = folder.path()}}; };
  for (std::uint64_t const chunk : {4096U, 65536U, 1U << 20U, 3U * 7U * 1024U}) {
    for (unsigned const slots : {2U, 4U, 8U}) {
      CAPTURE(chunk, slots);
      CHECK((train(files(), cut(chunk, slots)) == reference));
    }
  }
  for (double const share : {0.3, 1.0}) {
    CAPTURE(share);
    spillway::tier_stack stack{spillway::share{share, spillway::host_tier{64_MiB}},
                               spillway::share{1 - share, files()}};
    CHECK((train(std::move(stack), cut(4096), test::two_groups(2)) == reference));
  }
}
