// SPDX-License-Identifier: Apache-2.0
#include <spillway/tier/host_tier.hpp>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <utility>
#include <vector>

#include "support/catch.hpp"
#include "support/child.hpp"

using namespace spillway::literals;
using spillway::bytes;
using spillway::errc;
using spillway::error;
using spillway::host_tier;
using spillway::region;

TEST_CASE("host_tier: a region over the budget is refused with what was wanted and what is left") {
  host_tier tier{1_MiB};
  region const first = tier.allocate(640_KiB);
  try {
    static_cast<void>(tier.allocate(500_KiB));
    FAIL("500 KiB of 384 were lent");
  } catch (error const& failed) {
    CHECK(failed.code() == errc::capacity_exceeded);
    CHECK(failed.about().wanted == 500_KiB);
    CHECK(failed.about().got == 384_KiB);
  }
  region const second = tier.allocate(384_KiB);  // the refusal took nothing, and all of the budget can be used
  CHECK(tier.used() == tier.capacity());
  CHECK_THROWS_AS(tier.allocate(1_B), error);
  tier.deallocate(first);
  tier.deallocate(second);
  CHECK(tier.used() == 0_B);
  CHECK_THROWS_AS(tier.allocate(bytes{~0ULL}), error);
}

TEST_CASE("host_tier: a region is charged in whole pages, never rounded to a power of two or a huge page") {
  host_tier tier{16_MiB};
  region const small = tier.allocate(1_B);
  CHECK(tier.used() == 4_KiB);
  region const large = tier.allocate(5_MiB + 1_B);
  CHECK(tier.used() == 5_MiB + 8_KiB);
  CHECK(large.size == 5_MiB + 1_B);
  CHECK(reinterpret_cast<std::uintptr_t>(host_tier::data(large)) % (2U << 20U) == 0);
  CHECK(reinterpret_cast<std::uintptr_t>(host_tier::data(small)) % 4096 == 0);
}

TEST_CASE("host_tier: a region of no bytes costs nothing and can be read, written and deallocated") {
  host_tier tier{0_B};
  region const r = tier.allocate(0_B);
  CHECK(r.size == 0_B);
  tier.write(r, {}, {}).wait();
  tier.read(r, {}, {}).wait();
  tier.deallocate(r);
}

TEST_CASE("host_tier: a range outside the region is a bug of the caller") {
  host_tier tier{1_MiB};
  region const r = tier.allocate(100_B);
  std::vector<std::byte> data(101);
  CHECK(test::aborts([&] { tier.write(r, {}, data).wait(); }));
  CHECK(test::aborts([&] { tier.read(r, 1_B, std::span{data}.first(100)).wait(); }));
  CHECK(test::aborts([&] { tier.read(r, bytes{~0ULL}, std::span{data}.first(2)).wait(); }));
  CHECK(!test::aborts([&] { tier.read(r, 100_B, {}).wait(); }));
  CHECK(test::aborts([&] { tier.deallocate({r.id + 1, r.size}); }));
}

TEST_CASE("host_tier: a move keeps regions where they are") {
  host_tier tier{1_MiB};
  region const r = tier.allocate(100_B);
  std::byte* const where = tier.data(r);
  where[7] = std::byte{3};
  host_tier moved = std::move(tier);
  CHECK(moved.data(r) == where);
  CHECK(moved.data(r)[7] == std::byte{3});
  moved.deallocate(r);
}
