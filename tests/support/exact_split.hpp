// SPDX-License-Identifier: Apache-2.0
/// A codec that needs the narrow parameter, for tests: a master as the bf16 parameter and 16 bits more, with no loss.
#pragma once

#include <spillway/layout/parameter_layout.hpp>
#include <spillway/optimizer/state_codec_concept.hpp>

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

namespace test {

/// Stores the low half of the master. Works under rounding::nearest_away only: there the parameter is the upper half of the
/// master + 0x8000, so the low half says by its highest bit whether that carried. A float32 parameter is the master itself.
struct exact_split {
  static constexpr std::string_view name = "exact_split/nearest_away/1";
  static constexpr spillway::dtype type = spillway::dtype::u16;
  static constexpr std::uint64_t bytes_per_block = spillway::block_elements * sizeof(std::uint16_t);
  static constexpr bool needs_parameter = true;

  template <class V>
  [[nodiscard]] static V load(std::byte const* array, std::uint64_t element, V parameter) noexcept {
    float values[V::width];
    std::uint16_t low[V::width];
    parameter.store(values);
    std::memcpy(low, array + element * sizeof *low, sizeof low);
    for (int i = 0; i < V::width; ++i) {
      auto const wide = std::bit_cast<std::uint32_t>(values[i]);
      if ((wide & 0xffffU) != 0) continue;  // more than a bf16: a float32 parameter
      values[i] = std::bit_cast<float>((wide | low[i]) - (low[i] >= 0x8000U ? 0x10000U : 0U));
    }
    return V::load(values);
  }
  template <class V>
  static void store(std::byte* array, std::uint64_t element, V value) noexcept {
    float values[V::width];
    std::uint16_t low[V::width];
    value.store(values);  // NaN is canonical after this, so that its low half is that of the parameter's NaN
    for (int i = 0; i < V::width; ++i)
      low[i] = static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(values[i]) & 0xffffU);
    std::memcpy(array + element * sizeof *low, low, sizeof low);
  }
};
static_assert(spillway::StateCodec<exact_split>);

}  // namespace test
