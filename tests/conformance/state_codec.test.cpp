// SPDX-License-Identifier: Apache-2.0
#include <spillway/optimizer/float32.hpp>
#include <spillway/testing/state_codec_conformance.hpp>

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "support/catch.hpp"
#include "support/exact_split.hpp"

using spillway::bf16;
using spillway::rounding;
using spillway::testing::check_state_codec;

namespace {
std::vector<std::string> const none;

/// The upper half only: a codec that loses, by a rule that its name states.
struct bfloat16 {
  static constexpr std::string_view name = "bfloat16/nearest_even";
  static constexpr spillway::dtype type = spillway::dtype::bfloat16;
  static constexpr std::uint64_t bytes_per_block = spillway::block_elements * 2;
  static constexpr bool needs_parameter = false;
  template <class V>
  static V load(std::byte const* array, std::uint64_t element, V) noexcept {
    return V::load(reinterpret_cast<bf16 const*>(array) + element);
  }
  template <class V>
  static void store(std::byte* array, std::uint64_t element, V value) noexcept {
    value.template store<rounding::nearest_even>(reinterpret_cast<bf16*>(array) + element);
  }
};
static_assert(spillway::StateCodec<bfloat16>);
}  // namespace

TEST_CASE("state codec conformance: float32") { CHECK(check_state_codec<spillway::float32>() == none); }

TEST_CASE("state codec conformance: a user's exact split, under the one rounding rule that its name states") {
  CHECK(check_state_codec<test::exact_split>({.lossless = true, .rule = rounding::nearest_away}) == none);
}

TEST_CASE("state codec conformance: an exact split is not exact under nearest-even") {
  CHECK(check_state_codec<test::exact_split>({.lossless = true, .rule = rounding::nearest_even}) != none);
}

TEST_CASE("state codec conformance: a codec that loses passes when it does not promise otherwise") {
  CHECK(check_state_codec<bfloat16>({.lossless = false}) == none);
  CHECK(check_state_codec<bfloat16>({.lossless = true}) != none);
}

namespace {
/// Codecs that break one law each: the suite must see it.
struct codec_of_a_wrong_size : spillway::float32 {
  static constexpr std::uint64_t bytes_per_block = 5000;
};
struct codec_that_drifts : bfloat16 {
  template <class V>
  static V load(std::byte const* array, std::uint64_t element, V parameter) noexcept {
    return bfloat16::load<V>(array, element, parameter) * V{1.5F};
  }
};
struct codec_that_rounds_otherwise_when_wide : bfloat16 {
  template <class V>
  static void store(std::byte* array, std::uint64_t element, V value) noexcept {
    auto* const to = reinterpret_cast<bf16*>(array) + element;
    if constexpr (V::width == 1) {
      value.template store<rounding::nearest_even>(to);
    } else {
      value.template store<rounding::nearest_away>(to);
    }
  }
};
struct codec_that_clears_the_next_element : spillway::float32 {
  template <class V>
  static void store(std::byte* array, std::uint64_t element, V value) noexcept {
    float32::store<V>(array, element, value);
    std::memset(array + (element + V::width) % spillway::block_elements * 4, 0, 4);
  }
};

template <class Broken>
[[nodiscard]] bool found_in(std::string const& law) {
  auto const broken = check_state_codec<Broken>({.lossless = false});
  return std::any_of(broken.begin(), broken.end(), [&](auto const& text) { return text.rfind(law, 0) == 0; });
}
}  // namespace

TEST_CASE("state codec conformance: the suite finds broken laws") {
  CHECK(found_in<codec_of_a_wrong_size>("facts"));
  CHECK(found_in<codec_that_drifts>("round trip"));
  CHECK(found_in<codec_that_rounds_otherwise_when_wide>("value types"));
  CHECK(found_in<codec_that_clears_the_next_element>("neighbours: storing one"));
}
