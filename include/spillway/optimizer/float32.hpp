// SPDX-License-Identifier: Apache-2.0
/// The plain codec: one fp32 an element, as it is.
#pragma once

#include <spillway/layout/parameter_layout.hpp>
#include <spillway/optimizer/state_codec_concept.hpp>

namespace spillway::inline v0 {

/// Lossless. 4 B an element.
struct float32 {
  static constexpr std::string_view name = "float32";
  static constexpr dtype type = dtype::float32;
  static constexpr std::uint64_t bytes_per_block = block_elements * sizeof(float);
  static constexpr bool needs_parameter = false;

  template <class V>
  [[nodiscard]] SPILLWAY_HOST_DEVICE static V load(std::byte const* array, std::uint64_t element, V) noexcept {
    return V::load(reinterpret_cast<float const*>(array) + element);
  }
  template <class V>
  SPILLWAY_HOST_DEVICE static void store(std::byte* array, std::uint64_t element, V value) noexcept {
    value.store(reinterpret_cast<float*>(array) + element);
  }
};
static_assert(StateCodec<float32>);

}  // namespace spillway::inline v0
