// SPDX-License-Identifier: Apache-2.0
#include <spillway/optimizer/any_updater.hpp>
#include <spillway/optimizer/stored.hpp>
#include <spillway/tier/file_tier.hpp>
#include <spillway/tier/host_tier.hpp>
#include <spillway/tier/tier_stack.hpp>

#include "support/catch.hpp"
#include "support/exact_split.hpp"
#include "support/scratch.hpp"
#include "support/train.hpp"
#include "support/transforming_tier.hpp"
#include "support/user_kernels.hpp"
#include "support/user_schedulers.hpp"

using namespace spillway::literals;
using spillway::adamw_kernel;
using spillway::float32;
using spillway::host_tier;
using spillway::host_updater;
using spillway::rounding;
using spillway::stored;
using test::cut;
using test::train;

namespace {
spillway::file_tier<> files(test::scratch const& folder) {
  return {spillway::thread_engine<>{{.threads = 2}}, {.directory = folder.path()}};
}
}  // namespace

TEST_CASE("a user's codec: an exact split of the master gives the bits of float32 under the same rounding rule") {
  using plain = stored<adamw_kernel, rounding::nearest_away, float32, float32, float32>;
  using split = stored<adamw_kernel, rounding::nearest_away, test::exact_split, float32, float32>;
  adamw_kernel const rule{.lr = 0.01};
  test::snapshot const wanted = train(host_tier{64_MiB}, cut(65536), host_updater<plain>(plain{rule}));
  test::scratch const folder;
  for (std::uint64_t const chunk : {5120U, 65536U}) {
    test::snapshot const got = train(files(folder), cut(chunk), host_updater<split>(split{rule}));
    CHECK(got.parameters == wanted.parameters);
    for (std::size_t t = 0; t < wanted.arrays.size(); ++t) {
      CHECK(got.arrays[t][1] == wanted.arrays[t][1]);
      CHECK(got.arrays[t][2] == wanted.arrays[t][2]);
      // The master, put together again from the parameter and the 16 bits that are stored.
      bool same = true;
      bool const is_narrow = test::training_layout()[t].type == spillway::dtype::bfloat16;
      for (std::size_t e = 0; e < got.arrays[t][0].size() / 2; ++e) {
        float parameter = 0;
        std::memcpy(&parameter, &got.parameters[t][is_narrow ? e * 2 : e * 4], is_narrow ? 2 : 4);
        if (is_narrow) parameter = widen(got.narrow_parameter(t, e));
        float const master =
            test::exact_split::load<spillway::f32>(got.arrays[t][0].data(), e, spillway::f32{parameter}).value;
        same = same && std::bit_cast<std::uint32_t>(master) == std::bit_cast<std::uint32_t>(wanted.value(t, 0, e));
      }
      CHECK(same);
    }
  }
}

TEST_CASE("a user's codec: the parameters that it needs come back with an import") {
  using split = stored<adamw_kernel, rounding::nearest_away, test::exact_split, float32, float32>;
  spillway::host_device device({.memory = 16_MiB});
  auto const make = [&] {
    return std::make_unique<spillway::offload_pipeline<host_tier, host_updater<split>>>(
        test::training_layout(), device, host_tier{64_MiB}, host_updater<split>{}, spillway::sequential_scheduler{},
        cut(21504));
  };
  auto const first = make();
  test::trainer run(device, *first);
  run.initialise();
  run.step();
  auto const saved = test::snapshot_of(*first);
  std::vector<std::vector<std::byte>> chunks;
  for (std::size_t c = 0; c < first->chunks().size(); ++c) {
    first->export_chunk(
        c, [&](std::size_t, std::span<std::byte const> data) { chunks.emplace_back(data.begin(), data.end()); });
  }
  auto const second = make();
  test::trainer resumed(device, *second);
  second->begin_import();
  std::size_t next = 0;
  for (std::size_t c = 0; c < second->chunks().size(); ++c) {
    second->import_chunk(c, [&](std::size_t, std::span<std::byte> to) {
      std::copy(chunks[next].begin(), chunks[next].end(), to.begin()), ++next;
    });
  }
  for (std::size_t t = 0; t < second->layout().size(); ++t) {
    std::size_t at = 0;
    second->import_parameter(t, [&](std::span<std::byte> to) {
      std::copy_n(saved.parameters[t].begin() + static_cast<std::ptrdiff_t>(at), to.size(), to.begin());
      at += to.size();
    });
  }
  std::size_t counter = 0;
  struct restore {
    std::vector<std::uint64_t> const& from;
    std::size_t& at;
    void operator()(char const*, std::uint64_t& n) const { n = from[at++]; }
    void operator()(char const*, std::vector<std::uint64_t>& all) const {
      for (auto& n : all) n = from[at++];
    }
  };
  second->visit_counters(restore{saved.counters, counter});
  second->finish_import();
  CHECK((test::snapshot_of(*second) == saved));
  run.step();
  resumed.step();
  CHECK((test::snapshot_of(*second) == test::snapshot_of(*first)));
}

TEST_CASE(
    "a user's kernel by element: momentum in real steps gives the same bits for any cut, tier and number of threads") {
  using updater = host_updater<test::momentum_kernel>;
  test::snapshot const wanted = train(host_tier{64_MiB}, cut(1U << 20U), updater{});
  // By hand, for the scalar tensor, without clipping.
  float master = 8 * test::recorded(1004, 0);
  float buffer = 0;
  for (std::uint64_t step = 1; step <= 3; ++step) {
    float gradient = test::recorded(step * 100 + 4, 0);
    buffer = 0.9F * buffer + gradient;
    master = master - 0.1F * buffer;
  }
  spillway::host_device device({.memory = 16_MiB});
  spillway::offload_pipeline pipeline(test::training_layout(), device, host_tier{64_MiB}, updater{});
  test::trainer run(device, pipeline);
  run.initialise();
  for (int i = 0; i < 3; ++i) run.step({});
  CHECK(test::snapshot_of(pipeline).value(4, 0, 0) == Catch::Approx(master).epsilon(1e-6));

  test::scratch const folder;
  CHECK((train(files(folder), cut(4096, 2), updater{}) == wanted));
  CHECK((train(host_tier{64_MiB}, cut(21504),
               updater{test::momentum_kernel{}, std::make_shared<spillway::thread_pool>(3)}) == wanted));
}

TEST_CASE("a user's kernel by tensor: real steps give the same bits for any chunk size, and cut no tensor") {
  using updater = host_updater<test::normalised_momentum_kernel>;
  test::snapshot const wanted = train(host_tier{64_MiB}, cut(1U << 20U), updater{});
  test::scratch const folder;
  for (std::uint64_t const chunk : {1024U, 4096U, 65536U, 300000U}) {
    CAPTURE(chunk);
    CHECK((train(files(folder), cut(chunk, 2), updater{}) == wanted));
  }
  // The same rule by element could not: it has no norm of a cut tensor.
  spillway::host_device device({.memory = 16_MiB});
  spillway::offload_pipeline pipeline(test::training_layout(), device, host_tier{64_MiB}, updater{},
                                      spillway::sequential_scheduler{}, cut(4096));
  for (auto const& chunk : pipeline.chunks().chunks()) {
    for (auto const& r : chunk.runs) CHECK(r.count == pipeline.layout().elements(r.tensor));
  }
}

TEST_CASE("a user's scheduler: reverse, shuffled and interleaved walks give the same bits") {
  test::snapshot const wanted = train(host_tier{64_MiB});
  test::scratch const folder;
  CHECK((train(files(folder), cut(21504, 3), test::two_groups(), test::reverse_scheduler{}) == wanted));
  CHECK((train(files(folder), cut(4096, 5), test::two_groups(), test::shuffling_scheduler{7}) == wanted));
  CHECK((train(files(folder), cut(21504, 2), test::two_groups(), test::interleaved_scheduler{}) == wanted));
}

TEST_CASE("a user's tier: one that encrypts its bytes, on a thread of its own, gives the same bits") {
  test::snapshot const wanted = train(host_tier{64_MiB});
  CHECK((train(test::transforming_tier{host_tier{64_MiB}}, cut(21504)) == wanted));
  test::scratch const folder;
  CHECK((train(test::transforming_tier{files(folder)}, cut(21504, 2)) == wanted));
  spillway::tier_stack stack{spillway::share{0.5, host_tier{64_MiB}},
                             spillway::share{0.5, test::transforming_tier{host_tier{64_MiB}}}};
  CHECK((train(std::move(stack), cut(4096)) == wanted));
}

TEST_CASE("an updater of any type: the same bits through any_updater") {
  test::snapshot const wanted = train(host_tier{64_MiB});
  CHECK((train(host_tier{64_MiB}, cut(21504), spillway::any_updater{test::two_groups()}) == wanted));
}
