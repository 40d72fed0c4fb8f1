// SPDX-License-Identifier: Apache-2.0
/// The names and types of a training state, without its values: what two states must share for one to continue the other.
#pragma once

#include <spillway/core/digest.hpp>
#include <spillway/state/leaf.hpp>

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace spillway::inline v0 {

/// "tensor F32 [2,3]", "string", "tensor U64 [any]": for messages.
[[nodiscard]] inline std::string to_string(leaf_description const& leaf) {
  std::string out{name_of(leaf.kind)};
  if (leaf.kind == leaf_kind::string || leaf.kind == leaf_kind::opaque) return out;
  out += ' ';
  out += name_of(leaf.type);
  if (leaf.kind == leaf_kind::scalar) return out;
  out += " [";
  for (std::size_t i = 0; i < leaf.shape.size(); ++i) {
    if (i != 0) out += ',';
    out += leaf.resizable ? std::string("any") : std::to_string(leaf.shape[i]);
  }
  return out + ']';
}

/// A hash of names, kinds, dtypes and fixed shapes, in declaration order. Lengths that belong to values are left out.
/// Errors   none; noexcept.
/// Threads  safe.
[[nodiscard]] inline hash128 schema_hash(std::span<leaf_description const> leaves) {
  std::string text;
  auto const word = [&text](std::uint64_t value) {
    for (unsigned i = 0; i < 8; ++i) text += static_cast<char>(static_cast<unsigned char>(value >> (8 * i)));
  };
  for (leaf_description const& leaf : leaves) {
    word(leaf.name.size());
    text += leaf.name;
    word(static_cast<std::uint64_t>(leaf.kind));
    word(static_cast<std::uint64_t>(leaf.type));
    word(leaf.resizable ? 1 : 0);
    word(leaf.resizable ? 0 : leaf.shape.size());
    if (leaf.resizable) continue;
    for (std::uint64_t const extent : leaf.shape) word(extent);
  }
  return hash_bytes(text);
}

}  // namespace spillway::inline v0
