// SPDX-License-Identifier: Apache-2.0
#include <spillway/core/counter_rng.hpp>

#include <algorithm>
#include <iterator>
#include <random>
#include <vector>

#include "support/catch.hpp"

namespace {
std::vector<std::uint32_t> words(spillway::philox_words counter, std::uint64_t key) {
  auto const out = spillway::philox4x32(counter, key);
  return {std::begin(out.word), std::end(out.word)};
}
}  // namespace

TEST_CASE("counter_rng: Philox4x32-10 gives the known answers of Random123") {
  using list = std::vector<std::uint32_t>;
  CHECK(words({{0, 0, 0, 0}}, 0) == list{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8});
  CHECK(words({{0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff}}, 0xffffffffffffffffU) ==
        list{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd});
  CHECK(words({{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}}, 0x299f31d0a4093822U) ==
        list{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1});
}

TEST_CASE("counter_rng: the draws are the words of consecutive counters, all four of each") {
  spillway::counter_rng rng{.seed = 0x299f31d0a4093822U, .stream = 0x0370734413198a2eU, .counter = 0x05a308d3243f6a88U};
  for (std::uint64_t n = 0; n < 9; ++n) {
    auto const block = rng.counter / 4;
    auto const expected =
        spillway::philox4x32(
            {{static_cast<std::uint32_t>(block), static_cast<std::uint32_t>(block >> 32U), 0x13198a2e, 0x03707344}},
            rng.seed)
            .word[rng.counter % 4];
    CHECK(rng() == expected);
  }
}

TEST_CASE("counter_rng: saving three numbers and going on gives the same draws") {
  spillway::counter_rng rng{.seed = 7, .stream = 3};
  for (int i = 0; i < 1001; ++i) static_cast<void>(rng());
  spillway::counter_rng resumed{rng.seed, rng.stream, rng.counter};
  CHECK(resumed.counter == 1001);
  spillway::counter_rng skipped{.seed = 7, .stream = 3};
  skipped.discard(1001);
  for (int i = 0; i < 10; ++i) {
    auto const next = rng();
    CHECK(resumed() == next);
    CHECK(skipped() == next);
    CHECK(resumed.at(1001 + static_cast<std::uint64_t>(i)) == next);
  }
}

TEST_CASE("counter_rng: streams of one seed differ") {
  spillway::counter_rng a{.seed = 7, .stream = 0};
  spillway::counter_rng b{.seed = 7, .stream = 1};
  int equal = 0;
  for (int i = 0; i < 1000; ++i) equal += a() == b() ? 1 : 0;
  CHECK(equal < 3);
}

TEST_CASE("counter_rng: it is a uniform random bit generator of the standard") {
  static_assert(std::uniform_random_bit_generator<spillway::counter_rng>);
  static_assert(std::is_aggregate_v<spillway::counter_rng>);
  std::vector<int> order{0, 1, 2, 3, 4, 5, 6, 7};
  std::shuffle(order.begin(), order.end(), spillway::counter_rng{.seed = 1});
  std::sort(order.begin(), order.end());
  CHECK(order == std::vector<int>{0, 1, 2, 3, 4, 5, 6, 7});
}
