// SPDX-License-Identifier: Apache-2.0
/// The least that models StateCodec, and a near miss per requirement.
#pragma once

#include <spillway/core/f32.hpp>
#include <spillway/layout/parameter_layout.hpp>
#include <spillway/optimizer/state_codec_concept.hpp>

#include <cstddef>
#include <cstdint>

namespace spillway::inline v0::testing {

/// No constructor, no state: everything is static.
struct minimal_codec {
  minimal_codec() = delete;
  static constexpr char const* name = "minimal";
  static constexpr dtype type = dtype::float32;
  static constexpr int bytes_per_block = 4096;
  static constexpr bool needs_parameter = false;
  template <class V>
  static V load(std::byte const* array, std::uint64_t element, V) noexcept {
    return V::load(reinterpret_cast<float const*>(array) + element);
  }
  template <class V>
  static void store(std::byte* array, std::uint64_t element, V value) noexcept {
    value.store(reinterpret_cast<float*>(array) + element);
  }
};

namespace near_miss {

struct codec_named_by_number : minimal_codec {
  static constexpr int name = 7;
};
struct codec_type_by_name : minimal_codec {
  static constexpr char const* type = "F32";
};
struct codec_without_bytes_per_block : minimal_codec {
  using bytes_per_block = void;
};
struct codec_without_needs_parameter : minimal_codec {
  using needs_parameter = void;
};
struct codec_that_loads_floats : minimal_codec {
  template <class V>
  static float load(std::byte const*, std::uint64_t, V) noexcept {
    return 0;
  }
};
struct codec_that_loads_mutable_bytes : minimal_codec {
  template <class V>
  static V load(std::byte* array, std::uint64_t element, V parameter) noexcept {
    return minimal_codec::load<V>(array, element, parameter);
  }
};
struct codec_that_loads_without_the_parameter : minimal_codec {
  template <class V>
  static V load(std::byte const* array, std::uint64_t element) noexcept {
    return minimal_codec::load<V>(array, element, V{});
  }
};
struct codec_throwing_load : minimal_codec {
  template <class V>
  static V load(std::byte const* array, std::uint64_t element, V parameter) {
    return minimal_codec::load<V>(array, element, parameter);
  }
};
struct codec_without_store : minimal_codec {
  template <class V>
  static void store(std::byte*, std::uint64_t, V) = delete;
};
struct codec_throwing_store : minimal_codec {
  template <class V>
  static void store(std::byte* array, std::uint64_t element, V value) {
    minimal_codec::store<V>(array, element, value);
  }
};

}  // namespace near_miss

}  // namespace spillway::inline v0::testing
