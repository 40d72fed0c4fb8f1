// SPDX-License-Identifier: Apache-2.0
/// What a StateCodec promises beyond what the compiler checks, as a list of broken laws. For users' own codecs too.
#pragma once

#include <spillway/core/exact_arithmetic.hpp>
#include <spillway/core/lanes.hpp>
#include <spillway/layout/stored_array.hpp>
#include <spillway/optimizer/state_codec_concept.hpp>
#include <spillway/testing/detail/law_list.hpp>

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

namespace spillway::inline v0::testing {

/// What a codec's name states, as far as the check must know it.
struct codec_promise {
  bool lossless = true;  ///< load gives back the very bits that store was given; NaN the canonical one
  rounding rule = rounding::nearest_even;  ///< of the narrow parameter, for a codec that needs it
};

namespace detail {

template <StateCodec C>
class state_codec_check {
 public:
  explicit state_codec_check(codec_promise promise) : promise_(promise) {}

  [[nodiscard]] std::vector<std::string> run() {
    float_environment const exact;
    laws_.law("facts", [this] { facts(); });
    laws_.law("round trip", [this] { round_trip(); });
    laws_.law("value types", [this] { value_types(); });
    laws_.law("neighbours", [this] { neighbours(); });
    return laws_.take();
  }

 private:
  static constexpr std::uint64_t count = 2 * block_elements;
  static constexpr std::size_t block_bytes = C::bytes_per_block;
  static constexpr std::size_t array_size = count / block_elements * block_bytes;

  static std::uint32_t bits(float x) noexcept { return std::bit_cast<std::uint32_t>(x); }
  static std::uint32_t canonical(float x) noexcept {
    float out = 0;
    f32{x}.store(&out);
    return bits(out);
  }
  /// Any bits at all, and each round some with halves that are ties of a rounding.
  static std::vector<float> samples(std::uint64_t seed) {
    std::vector<std::byte> raw(count * sizeof(float));
    fill_pattern(raw, seed);
    std::vector<float> out(count);
    std::memcpy(out.data(), raw.data(), raw.size());
    for (std::size_t e = 0; e < count; e += 5) out[e] = std::bit_cast<float>((bits(out[e]) & 0xffff0000U) | 0x8000U);
    for (std::size_t e = 1; e < count; e += 97)
      out[e] = std::bit_cast<float>(0x7f7fffffU ^ (e % 2 == 0 ? 0U : 0x80000000U));
    return out;
  }
  /// What the narrow parameter beside a master of `x` widens to.
  [[nodiscard]] float parameter_of(float x) const noexcept {
    return widen(promise_.rule == rounding::nearest_even ? narrow<rounding::nearest_even>(x)
                                                         : narrow<rounding::nearest_away>(x));
  }
  template <class V>
  void store_all(std::vector<std::byte>& array, std::vector<float> const& from) const {
    for (std::uint64_t e = 0; e < count; e += V::width) C::template store<V>(array.data(), e, V::load(&from[e]));
  }
  template <class V>
  [[nodiscard]] std::vector<float> load_all(std::vector<std::byte> const& array,
                                            std::vector<float> const& beside) const {
    std::vector<float> parameters(count);
    for (std::size_t e = 0; e < count; ++e) parameters[e] = parameter_of(beside[e]);
    std::vector<float> out(count);
    for (std::uint64_t e = 0; e < count; e += V::width) {
      C::template load<V>(array.data(), e, V::load(&parameters[e])).store(&out[e]);
    }
    return out;
  }

  void facts() {
    laws_.expect(!std::string_view(C::name).empty(), "the codec has no name");
    laws_.expect(block_bytes > 0, "a block takes no bytes");
    laws_.expect(C::type == dtype::u8 || block_bytes == block_elements * size_of(C::type).count,
                 "bytes_per_block is not 1024 elements of the type, and the type is not u8");
  }
  void round_trip() {
    for (std::uint64_t round = 0; round < 20; ++round) {
      auto const given = samples(round);
      std::vector<std::byte> array(array_size);
      store_all<f32>(array, given);
      auto const once = load_all<f32>(array, given);
      for (std::size_t e = 0; e < count && promise_.lossless; ++e) {
        if (bits(once[e]) == canonical(given[e])) continue;
        return laws_.expect(
            false, "bits " + std::to_string(bits(given[e])) + " come back as " + std::to_string(bits(once[e])));
      }
      store_all<f32>(array, once);
      auto const twice = load_all<f32>(array, once);
      for (std::size_t e = 0; e < count; ++e) {
        if (bits(twice[e]) == bits(once[e])) continue;
        return laws_.expect(false, "a value that was loaded changes when it is stored and loaded again");
      }
    }
  }
  void value_types() {
    for (std::uint64_t round = 100; round < 120; ++round) {
      auto const given = samples(round);
      std::vector<std::byte> one(array_size);
      std::vector<std::byte> many(array_size);
      store_all<f32>(one, given);
      store_all<lanes>(many, given);
      if (one != many) return laws_.expect(false, "f32 and lanes store other bytes");
      auto const a = load_all<f32>(one, given);
      auto const b = load_all<lanes>(one, given);
      if (std::memcmp(a.data(), b.data(), count * sizeof(float)) != 0)
        return laws_.expect(false, "f32 and lanes load other bits");
    }
  }
  void neighbours() {
    auto const given = samples(200);
    std::vector<std::byte> guarded(array_size + 2 * block_bytes);
    fill_pattern(guarded, 201);
    auto const before = guarded;
    std::vector<std::byte> whole(array_size);
    store_all<f32>(whole, given);
    for (std::uint64_t e = 0; e < count; ++e)
      C::template store<f32>(guarded.data() + block_bytes, e, f32::load(&given[e]));
    laws_.expect(std::memcmp(guarded.data(), before.data(), block_bytes) == 0 &&
                     std::memcmp(guarded.data() + block_bytes + array_size, before.data() + block_bytes + array_size,
                                 block_bytes) == 0,
                 "bytes outside of the array were written");
    std::vector<std::byte> array = whole;
    auto const other = samples(202);
    for (std::uint64_t const e : {std::uint64_t{0}, std::uint64_t{17}, block_elements - 1, block_elements, count - 1}) {
      C::template store<f32>(array.data(), e, f32::load(&other[e]));
      C::template store<f32>(array.data(), e, f32::load(&given[e]));
    }
    laws_.expect(array == whole, "storing one element changes bytes of others");
  }

  codec_promise promise_;
  law_list laws_;
};

}  // namespace detail

/// Tries the laws of StateCodec. The broken laws, each with what was seen; empty: it passes.
/// Errors  none.
template <StateCodec C>
[[nodiscard]] std::vector<std::string> check_state_codec(codec_promise promise = {}) {
  return detail::state_codec_check<C>{promise}.run();
}

}  // namespace spillway::inline v0::testing
