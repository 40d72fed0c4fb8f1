// SPDX-License-Identifier: Apache-2.0
/// Element types, with the names that safetensors gives them.
#pragma once

#include <spillway/core/bytes.hpp>

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

namespace spillway::inline v0 {

/// An element type. Values are stable: they appear in layout hashes.
enum class dtype : std::uint8_t {
  boolean,
  f4,
  f6_e2m3,
  f6_e3m2,
  u8,
  i8,
  f8_e5m2,
  f8_e4m3,
  f8_e8m0,
  f8_e4m3fnuz,
  f8_e5m2fnuz,
  i16,
  u16,
  float16,
  bfloat16,
  i32,
  u32,
  float32,
  c64,
  float64,
  i64,
  u64,
};

struct dtype_facts {
  std::string_view name;  ///< as safetensors spells it
  unsigned bits;
};
inline constexpr std::array<dtype_facts, 22> dtype_table{{
    {"BOOL", 8},    {"F4", 4},      {"F6_E2M3", 6}, {"F6_E3M2", 6},     {"U8", 8},          {"I8", 8},
    {"F8_E5M2", 8}, {"F8_E4M3", 8}, {"F8_E8M0", 8}, {"F8_E4M3FNUZ", 8}, {"F8_E5M2FNUZ", 8}, {"I16", 16},
    {"U16", 16},    {"F16", 16},    {"BF16", 16},   {"I32", 32},        {"U32", 32},        {"F32", 32},
    {"C64", 64},    {"F64", 64},    {"I64", 64},    {"U64", 64},
}};

[[nodiscard]] constexpr std::string_view name_of(dtype type) noexcept {
  return dtype_table[static_cast<std::size_t>(type)].name;
}
[[nodiscard]] constexpr unsigned bits_of(dtype type) noexcept {
  return dtype_table[static_cast<std::size_t>(type)].bits;
}
/// Size of one element. Pre: a type of whole bytes.
[[nodiscard]] constexpr bytes size_of(dtype type) noexcept { return bytes{bits_of(type) / 8U}; }
[[nodiscard]] constexpr std::optional<dtype> dtype_named(std::string_view name) noexcept {
  for (std::size_t i = 0; i < dtype_table.size(); ++i) {
    if (dtype_table[i].name == name) return static_cast<dtype>(i);
  }
  return std::nullopt;
}

struct bf16;
/// The dtype of a C++ arithmetic type; only the listed types have one.
template <class T>
inline constexpr dtype dtype_of = [] {
  static_assert(sizeof(T) == 0, "this type has no dtype");
  return dtype{};
}();
template <>
inline constexpr dtype dtype_of<bool> = dtype::boolean;
template <>
inline constexpr dtype dtype_of<std::uint8_t> = dtype::u8;
template <>
inline constexpr dtype dtype_of<std::int8_t> = dtype::i8;
template <>
inline constexpr dtype dtype_of<std::uint16_t> = dtype::u16;
template <>
inline constexpr dtype dtype_of<std::int16_t> = dtype::i16;
template <>
inline constexpr dtype dtype_of<std::uint32_t> = dtype::u32;
template <>
inline constexpr dtype dtype_of<std::int32_t> = dtype::i32;
template <>
inline constexpr dtype dtype_of<std::uint64_t> = dtype::u64;
template <>
inline constexpr dtype dtype_of<std::int64_t> = dtype::i64;
template <>
inline constexpr dtype dtype_of<float> = dtype::float32;
template <>
inline constexpr dtype dtype_of<double> = dtype::float64;
template <>
inline constexpr dtype dtype_of<bf16> = dtype::bfloat16;

}  // namespace spillway::inline v0
