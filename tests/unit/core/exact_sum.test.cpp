// SPDX-License-Identifier: Apache-2.0
#include <spillway/core/exact_sum.hpp>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <limits>
#include <vector>

#include "support/catch.hpp"

using spillway::exact_sum;

namespace {
/// Doubles by integer arithmetic. Modes: usual, whole range, denormal, near overflow, tiny, many ties, pairs that cancel.
std::vector<double> numbers(std::uint64_t seed, int count, int mode) {
  std::vector<double> out;
  std::uint64_t x = seed;
  for (int i = 0; i < count; ++i) {
    x = x * 6364136223846793005U + 1442695040888963407U;
    std::uint64_t const u = (x ^ (x >> 29U)) * 0x94d049bb133111ebU;
    std::uint64_t mantissa = (u >> 11U) & 0xfffffffffffffU;
    std::uint64_t const e = (u >> 1U) & 0x3ffU;
    std::uint64_t exponent = 0;
    switch (mode) {
      case 0:
        exponent = 1003 + e % 40;
        break;
      case 1:
        exponent = (u >> 3U) % 2046;
        break;
      case 2:
        break;
      case 3:
        exponent = 2040 + e % 6;
        break;
      case 4:
        exponent = 1 + e % 60;
        break;
      case 5:
        exponent = 1023 + e % 2, mantissa &= ~std::uint64_t{0x3fffffff};
        break;
      default:
        exponent = 523 + e;
        if (i % 2 == 1 && i % 7 != 0) {
          out.push_back(-out.back());
          continue;
        }
    }
    out.push_back(std::bit_cast<double>((u & (std::uint64_t{1} << 63U)) | exponent << 52U | mantissa));
  }
  return out;
}
std::uint64_t bits(double x) { return std::bit_cast<std::uint64_t>(x); }
double sum_of(std::vector<double> const& values) {
  exact_sum sum;
  for (double const v : values) sum.add(v);
  return sum.value();
}

struct known_sum {
  std::uint64_t seed;
  int count;
  int mode;
  std::uint64_t bits;
};
// Sums of rationals, rounded once to nearest, ties to even.
constexpr known_sum known[] = {
    {0x1715609f7c746c69U, 1, 0, 0xc060cad868d317a6U},    {0x6a99b4b1f77dd0fcU, 2, 0, 0x4020a203b9c83708U},
    {0xbe1e08c47287358fU, 3, 0, 0xc0eabd42c0dce43eU},    {0x11a25cd6ed909a22U, 10, 0, 0xc0bc9972152d8201U},
    {0x6526b0e96899feb5U, 1000, 0, 0xc101780361e4f6fbU}, {0x3fcd1e15e67972f4U, 1, 1, 0xceb10867ae2fcb73U},
    {0x935172286182d787U, 2, 1, 0x509d5479ffb8b88bU},    {0xe6d5c63adc8c3c1aU, 3, 1, 0xf4bf1d8fd9bbb20aU},
    {0x3a5a1a4d5795a0adU, 10, 1, 0x79fd8aea8e27a4caU},   {0x8dde6e5fd29f0540U, 1000, 1, 0x7fc7251e0e563ddaU},
    {0x6884db8c507e797fU, 1, 2, 0x0005985bdadf3e88U},    {0xbc092f9ecb87de12U, 2, 2, 0x000a773cdc53551dU},
    {0x0f8d83b1469142a5U, 3, 2, 0x000705684ef8ffefU},    {0x6311d7c3c19aa738U, 10, 2, 0x0028f63a5161ffe5U},
    {0xb6962bd63ca40bcbU, 1000, 2, 0x00278efb083ea679U}, {0x913c9902ba83800aU, 1, 3, 0x7fb3eb2da67f1b11U},
    {0xe4c0ed15358ce49dU, 2, 3, 0x7f9436838bff14edU},    {0x38454127b0964930U, 3, 3, 0x7f1ae65538fd2a80U},
    {0x8bc9953a2b9fadc3U, 10, 3, 0x7fe1ed8cda2351fdU},   {0xdf4de94ca6a91256U, 1000, 3, 0xfff0000000000000U},
    {0xb9f4567924888695U, 1, 4, 0x808cce1cd9ad67a2U},    {0x0d78aa8b9f91eb28U, 2, 4, 0x817336405c084664U},
    {0x60fcfe9e1a9b4fbbU, 3, 4, 0x03c94927bfe9c844U},    {0xb48152b095a4b44eU, 10, 4, 0x834d75536cc53cbbU},
    {0x0805a6c310ae18e1U, 1000, 4, 0x83f48e771da77041U}, {0xe2ac13ef8e8d8d20U, 1, 5, 0x3ffa237d80000000U},
    {0x363068020996f1b3U, 2, 5, 0xc01408cb10000000U},    {0x89b4bc1484a05646U, 3, 5, 0xc00c07fe00000000U},
    {0xdd391026ffa9bad9U, 10, 5, 0x4023096e20000000U},   {0x30bd64397ab31f6cU, 1000, 5, 0xc052bd8bff000000U},
    {0x0b63d165f89293abU, 1, 6, 0xd9806bf94fdf6b1bU},    {0x5ee82578739bf83eU, 2, 6, 0x0000000000000000U},
    {0xb26c798aeea55cd1U, 3, 6, 0x32a8becbb9ffdfe9U},    {0x05f0cd9d69aec164U, 10, 6, 0xe065e365b8069a75U},
    {0x597521afe4b825f7U, 1000, 6, 0xdfe9ca89084d274cU},
};
constexpr double largest = std::numeric_limits<double>::max();
constexpr double smallest = std::numeric_limits<double>::denorm_min();
constexpr double infinity = std::numeric_limits<double>::infinity();
}  // namespace

TEST_CASE("exact_sum: the correctly rounded sum of rationals") {
  for (known_sum const& k : known) {
    CAPTURE(k.seed, k.count, k.mode);
    CHECK(bits(sum_of(numbers(k.seed, k.count, k.mode))) == k.bits);
  }
}

TEST_CASE("exact_sum: any order and any grouping give the same bits") {
  for (known_sum const& k : known) {
    auto values = numbers(k.seed, k.count, k.mode);
    std::uint64_t x = k.seed;
    for (int round = 0; round < 10; ++round) {
      for (std::size_t i = values.size(); i > 1; --i) {
        x = x * 6364136223846793005U + 1442695040888963407U;
        std::swap(values[i - 1], values[(x >> 33U) % i]);
      }
      exact_sum parts[3];
      for (std::size_t i = 0; i < values.size(); ++i) parts[(i * 7 + i / 5) % 3].add(values[i]);
      parts[1] += parts[2];
      parts[0] += parts[1];
      CHECK(bits(parts[0].value()) == k.bits);
    }
  }
}

TEST_CASE("exact_sum: digits of several are added as integers, as ranks do") {
  for (known_sum const& k : known) {
    auto const values = numbers(k.seed, k.count, k.mode);
    exact_sum ranks[4];
    for (std::size_t i = 0; i < values.size(); ++i) ranks[i % 4].add(values[i]);
    for (unsigned r = 1; r < 4; ++r) {
      for (std::size_t d = 0; d < exact_sum::digit_count; ++d) ranks[0].digits()[d] += ranks[r].digits()[d];
    }
    CHECK(bits(ranks[0].value()) == k.bits);
  }
}

TEST_CASE("exact_sum: cancellation leaves exactly what is left") {
  CHECK(sum_of({1e300, 1, -1e300}) == 1);
  CHECK(sum_of({1e16, 1, -1e16, smallest, -1}) == smallest);
  CHECK(bits(sum_of({3, -3})) == 0);
  CHECK(sum_of({-smallest}) == -smallest);
  CHECK(bits(sum_of({})) == 0);
  CHECK(bits(sum_of({-0.0})) == 0);
}

TEST_CASE("exact_sum: intermediate overflow is no overflow, a sum over the range is infinity") {
  CHECK(sum_of({largest, largest, -largest, -largest, 5}) == 5);
  CHECK(sum_of({largest, largest}) == infinity);
  CHECK(sum_of({-largest, -largest}) == -infinity);
  CHECK(sum_of({largest, 0x1p969}) == largest);   // less than half of the last place
  CHECK(sum_of({largest, 0x1p970}) == infinity);  // a tie, away from the odd largest
}

TEST_CASE("exact_sum: ties go to even, and the least bit beyond a tie decides") {
  CHECK(sum_of({1, 0x1p-53}) == 1);
  CHECK(sum_of({1 + 0x1p-52, 0x1p-53}) == 1 + 0x1p-51);
  CHECK(sum_of({1, 0x1p-53, smallest}) == 1 + 0x1p-52);
  CHECK(sum_of({1, 0x1p-53, -smallest}) == 1);
  CHECK(sum_of({-1, -0x1p-53, -smallest}) == -1 - 0x1p-52);
  CHECK(sum_of({2 - 0x1p-52, 0x1p-53}) == 2);  // rounding carries into the exponent
}

TEST_CASE("exact_sum: denormal sums are exact") {
  CHECK(sum_of({smallest, smallest, smallest}) == 3 * smallest);
  CHECK(sum_of({0x1p-1022, -smallest}) == 0x1p-1022 - smallest);
  CHECK(sum_of({0x1p-1022 - smallest, smallest}) == 0x1p-1022);
}

TEST_CASE("exact_sum: a million additions without a carry in between") {
  exact_sum sum;
  for (int i = 0; i < 1000000; ++i) sum.add(i % 2 == 0 ? 0.1 : largest / 1e7);
  exact_sum other;
  for (int i = 0; i < 500000; ++i) other.add(0.1);
  exact_sum large;
  for (int i = 0; i < 500000; ++i) large.add(largest / 1e7);
  other += large;
  CHECK(bits(sum.value()) == bits(other.value()));
  for (int i = 0; i < 500000; ++i) sum.add(-(largest / 1e7));
  for (int i = 0; i < 500000; ++i) sum.add(-0.1);
  CHECK(bits(sum.value()) == 0);
}
