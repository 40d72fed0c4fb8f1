// SPDX-License-Identifier: Apache-2.0
#include <spillway/tier/host_tier.hpp>
#include <spillway/tier/limiting_tier.hpp>
#include <spillway/tier/tier_stack.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "support/catch.hpp"

using namespace spillway::literals;
using spillway::errc;
using spillway::error;
using spillway::host_tier;
using spillway::share;
using spillway::tier_stack;

namespace {
auto stack_of(double a, double b) {
  return tier_stack{share{a, host_tier{1_MiB}}, share{b, spillway::limiting_tier{host_tier{2_MiB}, 1_MiB}}};
}
std::size_t count(std::vector<std::uint32_t> const& placed, std::uint32_t tier) {
  return static_cast<std::size_t>(std::count(placed.begin(), placed.end(), tier));
}
}  // namespace

TEST_CASE("tier_stack: shares below 0 or that do not sum to 1 are refused") {
  auto const code = [](double a, double b) {
    try {
      static_cast<void>(stack_of(a, b));
    } catch (error const& failed) {
      return failed.code();
    }
    return std::error_code{};
  };
  CHECK(!code(0.25, 0.75));
  CHECK(!code(0, 1));
  CHECK(!code(1.0 / 3, 2.0 / 3 + 1e-12));
  CHECK(code(0.25, 0.7) == errc::invalid_option);
  CHECK(code(0.5, 0.5 + 1e-6) == errc::invalid_option);
  CHECK(code(-0.5, 1.5) == errc::invalid_option);
  CHECK(code(std::numeric_limits<double>::quiet_NaN(), 1) == errc::invalid_option);
  CHECK(code(std::numeric_limits<double>::infinity(), 0) == errc::invalid_option);
}

TEST_CASE("tier_stack: visit reaches each tier") {
  auto stack = stack_of(0.25, 0.75);
  static_assert(decltype(stack)::size == 2);
  CHECK(stack.shares()[1] == 0.75);
  CHECK(stack.visit(0, [](auto& tier) { return tier.capacity(); }) == 1_MiB);
  spillway::region const r = stack.visit(1, [](auto& tier) { return tier.allocate(1_KiB); });
  CHECK(stack.get<1>().inner().used() == 4_KiB);
  CHECK(stack.get<0>().used() == 0_B);
  stack.visit(1, [&](auto& tier) { tier.deallocate(r); });
  auto const& view = stack;
  CHECK(view.visit(1, [](auto const& tier) { return tier.capacity(); }) == 1_MiB);
}

TEST_CASE("tier_stack: chunks are placed by largest remainder, and every one once") {
  for (std::size_t n = 0; n < 200; ++n) {
    for (double const a : {0.0, 0.1, 0.25, 1.0 / 3, 0.5, 0.999, 1.0}) {
      auto const placed = stack_of(a, 1 - a).place(n);
      REQUIRE(placed.size() == n);
      REQUIRE(std::abs(static_cast<double>(count(placed, 0)) - a * static_cast<double>(n)) <= 0.5 + 1e-6);
      REQUIRE(count(placed, 0) + count(placed, 1) == n);
    }
  }
  CHECK(count(stack_of(0.1, 0.9).place(30), 0) == 3);
  CHECK(count(stack_of(0.25, 0.75).place(10), 0) == 3);  // 2.5 and 7.5: the tie goes to the faster tier
  CHECK(count(stack_of(0.0, 1.0).place(1000), 0) == 0);
}

TEST_CASE("tier_stack: chunks are spread, so that fast and slow ones alternate") {
  CHECK(stack_of(0.25, 0.75).place(8) == std::vector<std::uint32_t>{1, 0, 1, 1, 1, 0, 1, 1});
  CHECK(stack_of(0.5, 0.5).place(6) == std::vector<std::uint32_t>{0, 1, 0, 1, 0, 1});
  // Any stretch of the order has its share, to within one chunk or so.
  auto const placed = stack_of(0.3, 0.7).place(1000);
  for (std::size_t first = 0; first + 100 <= placed.size(); ++first) {
    auto const begin = placed.begin() + static_cast<std::ptrdiff_t>(first);
    auto const here = std::count(begin, begin + 100, 0U);
    REQUIRE(std::abs(here - 30) <= 1);
  }
  CHECK(stack_of(0.3, 0.7).place(1000) == placed);
}

TEST_CASE("tier_stack: three tiers") {
  tier_stack const stack{share{0.2, host_tier{1_MiB}}, share{0.3, host_tier{2_MiB}}, share{0.5, host_tier{3_MiB}}};
  auto const placed = stack.place(11);
  CHECK(count(placed, 0) == 2);
  CHECK(count(placed, 1) == 3);
  CHECK(count(placed, 2) == 6);
  CHECK(stack.visit(2, [](auto const& tier) { return tier.capacity(); }) == 3_MiB);
}
