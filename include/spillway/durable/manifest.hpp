// SPDX-License-Identifier: Apache-2.0
/// The commit record of a checkpoint: names every file with every checksum, holds the small leaves, and hashes itself.
#pragma once

#include <spillway/core/bytes.hpp>
#include <spillway/core/digest.hpp>
#include <spillway/durable/file_record.hpp>
#include <spillway/layout/stored_array.hpp>
#include <spillway/state/leaf.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace spillway::inline v0 {

inline constexpr std::uint64_t manifest_format_version = 1;
inline constexpr char const* manifest_name = "MANIFEST.json";
/// Larger ones are neither written nor read. The checksums of 4 TB take about half of it.
inline constexpr bytes manifest_limit{64ULL << 20U};

/// One leaf as it was saved: its bytes, or the file that has them as a tensor of the leaf's name.
struct manifest_leaf {
  leaf_description about{};
  std::optional<std::vector<std::byte>> value{};
  std::string file{};
  friend bool operator==(manifest_leaf const&, manifest_leaf const&) = default;
};

/// The state that lives on tiers, by which member of the training state it is.
struct manifest_spill {
  std::string member{};
  std::uint64_t layout_hash = 0;
  std::string rule{};
  std::uint64_t chunk_elements = 0;
  std::vector<stored_array> arrays{};
  std::string parameters{};  ///< file of whole tensors
  std::string generation{};  ///< file of state arrays
  friend bool operator==(manifest_spill const&, manifest_spill const&) = default;
};

/// The checkpoint that was the newest when this one was saved.
struct manifest_parent {
  hash128 save_id{};
  std::uint64_t step = 0;
  friend bool operator==(manifest_parent const&, manifest_parent const&) = default;
};

/// What was saved, in parts. The whole is their sum.
struct state_digests {
  state_digest parameters{};
  state_digest optimizer{};
  state_digest leaves{};
  [[nodiscard]] state_digest all() const noexcept { return parameters + optimizer + leaves; }
  friend bool operator==(state_digests const&, state_digests const&) = default;
};

struct manifest {
  hash128 save_id{};
  std::uint64_t step = 0;
  std::uint64_t sequence =
      1;  ///< counts the saves of a directory: the newest is the one saved last, also after going back
  std::optional<manifest_parent> parent{};
  std::uint64_t world = 1;  ///< ranks that saved
  hash128 schema{};         ///< of the leaves
  state_digests digests{};
  std::optional<manifest_spill> spill{};
  std::vector<manifest_leaf> leaves{};  ///< in declaration order
  std::vector<file_record> files{};
  friend bool operator==(manifest const&, manifest const&) = default;
};

}  // namespace spillway::inline v0
