// SPDX-License-Identifier: Apache-2.0
/// A JSON document in memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace spillway::inline v0 {

struct json_member;

/// A JSON value: null, boolean, unsigned 64-bit number, string, array, or object whose members keep their order. Made
/// in place: `json_value{json_value::object{{"step", {7U}}, {"name", {"run"}}}}`; an int literal does not compile, 7U
/// does.
struct json_value {
  using array = std::vector<json_value>;
  using object = std::vector<json_member>;

  std::variant<std::nullptr_t, bool, std::uint64_t, std::string, array, object> data;
  std::uint64_t position = 0;  ///< byte of the text at which it was read; writing ignores it

  /// The value as a T, one of the alternatives; nullptr when it is something else.
  /// Errors   none; noexcept.
  /// Threads  safe.
  template <class T>
  [[nodiscard]] T const* get_if() const noexcept {
    return std::get_if<T>(&data);
  }
  /// The member with that key; nullptr when there is none, or when this is no object.
  /// Errors   none; noexcept.
  /// Threads  safe.
  /// Cost     linear in the members.
  [[nodiscard]] inline json_value const* find(std::string_view key) const noexcept;
};

struct json_member {
  std::string key;
  json_value value;
};

inline json_value const* json_value::find(std::string_view key) const noexcept {
  auto const* members = get_if<object>();
  if (members == nullptr) return nullptr;
  for (auto const& member : *members) {
    if (member.key == key) return &member.value;
  }
  return nullptr;
}

}  // namespace spillway::inline v0
