// SPDX-License-Identifier: Apache-2.0
#include <spillway/tier/counting_tier.hpp>
#include <spillway/tier/host_tier.hpp>
#include <spillway/tier/limiting_tier.hpp>

#include <cstddef>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "support/catch.hpp"

using namespace spillway::literals;
using spillway::bytes;
using spillway::counting_tier;
using spillway::errc;
using spillway::error;
using spillway::host_tier;
using spillway::limiting_tier;
using spillway::region;

TEST_CASE("limiting_tier: lends no more than its limit, and what comes back can be lent again") {
  limiting_tier tier{host_tier{1_GiB}, 100_KiB};
  CHECK(tier.capacity() == 100_KiB);
  region const r = tier.allocate(60_KiB);
  try {
    static_cast<void>(tier.allocate(41_KiB));
    FAIL("more than the limit was lent");
  } catch (error const& failed) {
    CHECK(failed.code() == errc::capacity_exceeded);
    CHECK(failed.about().wanted == 41_KiB);
    CHECK(failed.about().got == 40_KiB);
  }
  CHECK(tier.inner().used() == 60_KiB);
  tier.deallocate(r);
  tier.deallocate(tier.allocate(100_KiB));
}

TEST_CASE("limiting_tier: a refusal of the tier inside is not counted") {
  limiting_tier tier{host_tier{10_KiB}, 100_KiB};
  CHECK(tier.capacity() == 10_KiB);
  for (int i = 0; i < 20; ++i) CHECK_THROWS_AS(tier.allocate(50_KiB), error);
  tier.deallocate(tier.allocate(8_KiB));
}

TEST_CASE("limiting_tier: data is the data of the tier inside") {
  limiting_tier tier{host_tier{1_MiB}, 100_KiB};
  region const r = tier.allocate(1_KiB);
  CHECK(tier.data(r) == host_tier::data(r));
  tier.deallocate(r);
}

TEST_CASE("counting_tier: counts bytes and calls in both directions, and can be read after the tier was moved") {
  auto const counts = std::make_shared<spillway::tier_counts>();
  counting_tier first{host_tier{1_MiB}, counts};
  counting_tier tier = std::move(first);
  region const a = tier.allocate(10_KiB);
  region const b = tier.allocate(20_KiB);
  std::vector<std::byte> data(5000);
  tier.write(a, {}, data).wait();
  tier.write(b, 1000_B, std::span{data}.first(100)).wait();
  tier.read(a, {}, std::span{data}.first(77)).wait();
  tier.flush().wait();
  CHECK(counts->bytes_written == 5100);
  CHECK(counts->writes == 2);
  CHECK(counts->bytes_read == 77);
  CHECK(counts->reads == 1);
  CHECK(counts->flushes == 1);
  CHECK(counts->allocated == 30U << 10U);
  tier.deallocate(a);
  region const c = tier.allocate(5_KiB);
  CHECK(counts->allocated == 25U << 10U);
  CHECK(counts->peak_allocated == 30U << 10U);
  CHECK_THROWS_AS(tier.allocate(2_MiB), error);
  CHECK(counts->allocated == 25U << 10U);
  tier.deallocate(b);
  tier.deallocate(c);
  CHECK(counts->allocated == 0);
  CHECK(tier.counts() == counts);
}
