// SPDX-License-Identifier: Apache-2.0
#include <spillway/layout/parameter_layout.hpp>

#include <string>
#include <vector>

#include "support/catch.hpp"

using namespace spillway::literals;
using spillway::dtype;
using spillway::errc;
using spillway::parameter_layout;
using spillway::tensor_spec;

namespace {
std::string refusal(std::vector<tensor_spec> tensors) {
  try {
    parameter_layout const made{std::move(tensors)};
  } catch (spillway::error const& failed) {
    CHECK(failed.code() == errc::layout_mismatch);
    return failed.about().detail;
  }
  return "";
}
std::vector<tensor_spec> three() {
  return {{"wte", {50, 41}, dtype::bfloat16, 0}, {"ln", {3}, dtype::float32, 1}, {"scale", {}, dtype::float32, 1}};
}
}  // namespace

TEST_CASE("parameter_layout: every tensor starts on a block of its own, empty ones take none") {
  parameter_layout const layout{{{"a", {1025}}, {"none", {4, 0}}, {"b", {1024}}, {"scalar", {}}, {"c", {2, 3}}}};
  CHECK(layout.size() == 5);
  std::vector<std::uint64_t> const first{0, 2, 2, 3, 4};
  std::vector<std::uint64_t> const count{1025, 0, 1024, 1, 6};
  for (std::size_t t = 0; t < 5; ++t) {
    CHECK(layout.first_block(t) == first[t]);
    CHECK(layout.elements(t) == count[t]);
  }
  CHECK(layout.blocks() == 5);
  CHECK(layout.elements() == 2056);
  CHECK(layout.parameter_bytes() == 4112_B);
  CHECK(spillway::blocks_for(0) == 0);
  CHECK(spillway::blocks_for(1024) == 1);
  CHECK(spillway::blocks_for(~std::uint64_t{0}) == std::uint64_t{1} << 54U);
}

TEST_CASE("parameter_layout: tensors are found by name") {
  parameter_layout const layout{three()};
  CHECK(layout.find("ln") == 1);
  CHECK(!layout.find("ln "));
  CHECK(!layout.find(""));
  CHECK(layout[0].name == "wte");
  CHECK(layout.tensors().size() == 3);
  CHECK(layout.groups() == 2);
  CHECK(layout.parameter_bytes() == (2050 * 2_B) + (4 * 4_B));
}

TEST_CASE("parameter_layout: what it refuses, it names") {
  CHECK(refusal({{"", {1}}}) == "tensor tensor 0 has no name");
  CHECK(refusal({{"a", {1}}, {"a", {2}}}) == "tensor a appears twice");
  CHECK(refusal({{"a", {1}, dtype::float16}}) == "tensor a has dtype F16; parameters are F32 or BF16");
  CHECK(refusal({{"huge", {std::uint64_t{1} << 40U, std::uint64_t{1} << 40U}}}).rfind("tensor huge has more", 0) == 0);
  CHECK(refusal({{"huge", {(std::uint64_t{1} << 56U) + 1}}}).rfind("tensor huge has more", 0) == 0);
}

TEST_CASE("parameter_layout: the sum of all tensors is bounded too") {
  std::uint64_t const half = std::uint64_t{1} << 55U;
  CHECK(refusal({{"a", {half}}, {"b", {half}}}).empty());
  CHECK(refusal({{"a", {half}}, {"b", {half}}, {"c", {1}}}).rfind("tensor c has more", 0) == 0);
}

TEST_CASE("parameter_layout: element counts beyond 2^31 and 2^32") {
  for (std::uint64_t const n : {(std::uint64_t{1} << 31U) - 1, std::uint64_t{1} << 31U, (std::uint64_t{1} << 31U) + 5,
                                (std::uint64_t{1} << 32U) + 1}) {
    parameter_layout const layout{{{"a", {n}, dtype::float32}, {"b", {n}}}};
    CHECK(layout.elements(0) == n);
    CHECK(layout.first_block(1) == (n + 1023) / 1024);
    CHECK(layout.elements() == 2 * n);
    CHECK(layout.parameter_bytes().count == 6 * n);
  }
}

TEST_CASE("parameter_layout: any group number counts") {
  parameter_layout const layout{{{"a", {1}, dtype::float32, 0xffffffffU}}};
  CHECK(layout.groups() == std::uint64_t{1} << 32U);
  CHECK(parameter_layout{}.groups() == 0);
}

TEST_CASE("parameter_layout: the hash is a function of names, shapes, types, groups and order, and of nothing else") {
  std::uint64_t const h = parameter_layout{three()}.hash();
  CHECK(h == parameter_layout{three()}.hash());
  CHECK(h == 0xe58d58727390a6b6U);  // in manifests: it never changes
  auto changed = [&](auto change) {
    auto tensors = three();
    change(tensors);
    return parameter_layout{tensors}.hash() != h;
  };
  CHECK(changed([](auto& t) { t[0].name = "wtf"; }));
  CHECK(changed([](auto& t) { t[0].shape = {41, 50}; }));
  CHECK(changed([](auto& t) { t[0].shape = {2050}; }));
  CHECK(changed([](auto& t) { t[2].shape = {1}; }));
  CHECK(changed([](auto& t) { t[1].type = dtype::bfloat16; }));
  CHECK(changed([](auto& t) { t[1].group = 0; }));
  CHECK(changed([](auto& t) { std::swap(t[0], t[1]); }));
  CHECK(changed([](auto& t) { t.pop_back(); }));
  CHECK(parameter_layout{}.hash() != h);
}
