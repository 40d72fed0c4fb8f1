// SPDX-License-Identifier: Apache-2.0
#include <spillway/layout/chunk_plan.hpp>
#include <spillway/layout/stored_array.hpp>

#include <cstdint>
#include <string>
#include <vector>

#include "support/catch.hpp"

using namespace spillway::literals;
using spillway::block_elements;
using spillway::block_range;
using spillway::chunk_plan;
using spillway::dtype;
using spillway::errc;
using spillway::granularity;
using spillway::parameter_layout;
using spillway::stored_array;

namespace {
/// Sizes of all kinds, by integer arithmetic.
parameter_layout random_layout(std::uint64_t seed, std::size_t tensors, std::uint64_t most) {
  std::vector<spillway::tensor_spec> specs;
  std::uint64_t x = seed;
  for (std::size_t i = 0; i < tensors; ++i) {
    x = x * 6364136223846793005U + 1442695040888963407U;
    std::uint64_t const kind = (x >> 60U) % 5;
    std::uint64_t const n = (x >> 20U) % most;
    specs.push_back({"t" + std::to_string(i),
                     {kind == 0   ? 0
                      : kind == 1 ? 1
                      : kind == 2 ? n / 1024 * 1024
                                  : n},
                     dtype::bfloat16,
                     static_cast<std::uint32_t>(i % 3)});
  }
  return parameter_layout{specs};
}

/// Appends the elements that the chunks cover, as (tensor, block) in order; checks each run.
void cover(parameter_layout const& layout, chunk_plan const& plan, std::uint64_t most,
           std::vector<std::pair<std::size_t, std::uint64_t>>& to) {
  std::uint64_t block = plan.size() == 0 ? 0 : plan[0].blocks.first;
  for (auto const& chunk : plan.chunks()) {
    REQUIRE(chunk.blocks.first == block);  // one after the other in the flat space
    REQUIRE(chunk.blocks.size() > 0);
    REQUIRE((chunk.blocks.size() <= most || chunk.runs.size() == 1));
    REQUIRE(chunk.elements() == chunk.blocks.size() * block_elements);
    std::uint64_t offset = 0;
    for (auto const& run : chunk.runs) {
      REQUIRE(run.offset == offset);
      REQUIRE(run.first % block_elements == 0);
      REQUIRE(run.count > 0);
      REQUIRE(run.first + run.count <= layout.elements(run.tensor));
      REQUIRE((run.count % block_elements == 0 || run.first + run.count == layout.elements(run.tensor)));
      REQUIRE(layout.first_block(run.tensor) + run.first / block_elements ==
              chunk.blocks.first + offset / block_elements);
      for (std::uint64_t b = 0; b < spillway::blocks_for(run.count); ++b)
        to.emplace_back(run.tensor, run.first / block_elements + b);
      offset += spillway::blocks_for(run.count) * block_elements;
    }
    REQUIRE(offset == chunk.elements());
    block = chunk.blocks.last;
  }
}
std::vector<std::pair<std::size_t, std::uint64_t>> all_blocks(parameter_layout const& layout) {
  std::vector<std::pair<std::size_t, std::uint64_t>> out;
  for (std::size_t t = 0; t < layout.size(); ++t) {
    for (std::uint64_t b = 0; b < spillway::blocks_for(layout.elements(t)); ++b) out.emplace_back(t, b);
  }
  return out;
}
template <class Call>
spillway::error error_of(Call call) {
  try {
    call();
  } catch (spillway::error const& failed) {
    return failed;
  }
  return {std::error_code{}, {}};
}
}  // namespace

TEST_CASE("chunk_plan: every element is in exactly one run, in order, for any layout and chunk size") {
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    auto const layout = random_layout(seed, seed % 12, 1U << (10U + seed % 8U));
    for (std::uint64_t const elements : {1024U, 2047U, 4096U, 21504U, 65536U, 1U << 24U}) {
      chunk_plan const plan(layout, elements);
      std::vector<std::pair<std::size_t, std::uint64_t>> covered;
      cover(layout, plan, elements / 1024, covered);
      CHECK(covered == all_blocks(layout));
      CHECK(plan.blocks() == layout.blocks());
      CHECK(plan.largest() <= elements / 1024);
    }
  }
}

TEST_CASE("chunk_plan: partitions cover what the whole does, each element once") {
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    auto const layout = random_layout(seed, 7, 20000);
    for (std::uint64_t parts = 1; parts <= 5; ++parts) {
      std::vector<std::pair<std::size_t, std::uint64_t>> covered;
      for (std::uint64_t p = 0; p < parts; ++p) {
        block_range const mine{layout.blocks() * p / parts, layout.blocks() * (p + 1) / parts};
        chunk_plan const plan(layout, 3072, {}, mine);
        CHECK(plan.blocks() == mine.size());
        cover(layout, plan, 3, covered);
      }
      CHECK(covered == all_blocks(layout));
    }
  }
}

TEST_CASE("chunk_plan: groups by tensor are never cut, others fill their chunks") {
  std::vector<granularity> const by_group{granularity::element, granularity::tensor, granularity::element};
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    auto const layout = random_layout(seed, 12, 30000);
    chunk_plan const plan(layout, 8192, by_group);
    std::vector<std::pair<std::size_t, std::uint64_t>> covered;
    cover(layout, plan, 8, covered);
    CHECK(covered == all_blocks(layout));
    for (auto const& chunk : plan.chunks()) {
      for (auto const& run : chunk.runs) {
        if (layout[run.tensor].group == 1) CHECK(run.count == layout.elements(run.tensor));
      }
    }
  }
}

TEST_CASE("chunk_plan: groups beyond those that are spoken of are as the last one") {
  parameter_layout const layout{{{"a", {5000}, dtype::bfloat16, 90}}};
  std::vector<granularity> const whole{granularity::element, granularity::tensor};
  CHECK(chunk_plan(layout, 1024, whole).size() == 1);
  CHECK(chunk_plan(layout, 1024, whole).largest() == 5);
  CHECK(chunk_plan(layout, 1024).size() == 5);
}

TEST_CASE("chunk_plan: small tensors share a chunk, one that is larger by tensor is alone in its own") {
  parameter_layout const layout{{{"a", {10}}, {"b", {10}}, {"large", {9000}}, {"c", {10}}}};
  std::vector<granularity> const whole{granularity::tensor};
  chunk_plan const plan(layout, 4096, whole);
  REQUIRE(plan.size() == 3);
  CHECK(plan[0].runs.size() == 2);
  CHECK(plan[1].runs.size() == 1);
  CHECK(plan[1].blocks == block_range{2, 11});
  CHECK(plan[2].runs.size() == 1);
}

TEST_CASE("chunk_plan: refuses chunks under a block, and partitions that cut what must stay whole, by name") {
  parameter_layout const layout{{{"a", {5000}}}};
  CHECK(error_of([&] { chunk_plan(layout, 1023); }).code() == errc::invalid_option);
  std::vector<granularity> const whole{granularity::tensor};
  auto const cut = error_of([&] { chunk_plan(layout, 4096, whole, {0, 3}); });
  CHECK(cut.code() == errc::layout_mismatch);
  CHECK(cut.about().detail.find("tensor a") != std::string::npos);
}

TEST_CASE("chunk_plan: nothing to cut") {
  CHECK(chunk_plan{}.size() == 0);
  CHECK(chunk_plan(parameter_layout{}, 4096).size() == 0);
  parameter_layout const layout{{{"a", {5000}}, {"none", {0}}}};
  CHECK(chunk_plan(layout, 4096, {}, {2, 2}).size() == 0);
  CHECK(chunk_plan(layout, 4096, {}, {7, 3}).size() == 0);
  CHECK(chunk_plan(layout, 4096, {}, {4, 100}).blocks() == 1);
}

TEST_CASE("chunk_plan: counts beyond 2^32") {
  std::uint64_t const n = (std::uint64_t{1} << 32U) + 1;
  parameter_layout const layout{{{"a", {n}}}};
  chunk_plan const plan(layout, std::uint64_t{1} << 31U);
  REQUIRE(plan.size() == 3);
  CHECK(plan[2].runs[0].first == std::uint64_t{1} << 32U);
  CHECK(plan[2].runs[0].count == 1);
  stored_array const array{"master", "float32", dtype::float32, 4096};
  CHECK(array_bytes(array, plan[0].blocks.size()).count == std::uint64_t{1} << 33U);
  CHECK(array_bytes(array, layout.blocks()).count == 4 * (std::uint64_t{1} << 32U) + 4096);
}

TEST_CASE("stored_array: arrays start on and are padded to 4096 B, whatever a block of them takes") {
  std::vector<stored_array> const arrays{{"master", "exact_split", dtype::u16, 2048},
                                         {"exp_avg", "float32", dtype::float32, 4096},
                                         {"exp_avg_sq", "blocks8", dtype::u8, 1032}};
  CHECK(arrays[0].typed());
  CHECK(arrays[1].typed());
  CHECK(!arrays[2].typed());
  for (std::uint64_t const blocks : {1U, 2U, 3U, 4U, 5U, 21U, 1000U}) {
    spillway::bytes sum{};
    for (std::size_t i = 0; i < arrays.size(); ++i) {
      CHECK(array_bytes(arrays[i], blocks).count % 4096 == 0);
      CHECK(array_bytes(arrays[i], blocks).count >= blocks * arrays[i].bytes_per_block);
      CHECK(array_bytes(arrays[i], blocks).count < blocks * arrays[i].bytes_per_block + 4096);
      CHECK(dense_offset(arrays, i, blocks) == sum);
      CHECK(slot_offset(arrays, i, blocks) == sum + i * 4096_B);
      sum += array_bytes(arrays[i], blocks);
    }
    CHECK(dense_bytes(arrays, blocks) == sum);
    CHECK(slot_bytes(arrays, blocks) == sum + 3 * 4096_B);
  }
}

TEST_CASE("stored_array: in a slot no two arrays start equal modulo a large power of two") {
  std::vector<stored_array> const arrays(5, {"x", "float32", dtype::float32, 4096});
  for (std::uint64_t const blocks : {512U, 1024U, 4096U}) {  // 2, 4, 16 MiB an array
    for (std::size_t i = 0; i < 5; ++i) {
      for (std::size_t j = 0; j < i; ++j) {
        CHECK((slot_offset(arrays, i, blocks) - slot_offset(arrays, j, blocks)).count % (std::uint64_t{1} << 16U) != 0);
      }
    }
  }
}
