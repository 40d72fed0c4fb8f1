// SPDX-License-Identifier: Apache-2.0
/// One code for each way that a checkpoint can be unusable, or a save refused.
#pragma once

#include <spillway/core/error.hpp>

#include <string>
#include <system_error>
#include <type_traits>

namespace spillway::inline v0 {

/// Why. Values are stable: they appear in logs.
enum class durable_errc {
  nothing_there = 1,       ///< no directory, or none that a save made: start afresh
  only_incomplete = 2,     ///< saves were begun and none was finished
  step_missing = 3,        ///< the step asked for is not there, others are
  manifest_missing = 4,    ///< a directory without a commit record: never finished, or cut
  manifest_damaged = 5,    ///< cut, changed, or not a manifest
  manifest_version = 6,    ///< written by a newer version of this library
  manifest_too_large = 7,  ///< over the size limit
  file_missing = 8,        ///< the manifest names a file that is not there
  file_size = 9,           ///< a file is longer or shorter than the manifest says
  checksum_mismatch = 10,  ///< bytes differ from those that were saved
  save_id_mismatch = 11,   ///< a file of another save under this one's name
  schema_mismatch = 12,    ///< names, kinds, dtypes or shapes differ from the state's
  rule_mismatch = 13,      ///< the stored bytes mean something else: kernel, rounding or codec differ
  not_covered = 14,        ///< elements of a tensor that no piece, or more than one piece, of the file holds
  digest_mismatch = 15,    ///< what was read is not what was verified
  already_exists = 16,     ///< another checkpoint of that step is there; it is never replaced
  step_renamed = 17,       ///< the directory's name and its manifest disagree about the step
};

namespace detail {
class durable_category final : public std::error_category {
 public:
  [[nodiscard]] char const* name() const noexcept override { return "spillway.durable"; }
  [[nodiscard]] std::string message(int code) const override {
    switch (static_cast<durable_errc>(code)) {
      case durable_errc::nothing_there:
        return "no checkpoint there";
      case durable_errc::only_incomplete:
        return "only unfinished checkpoints there";
      case durable_errc::step_missing:
        return "no checkpoint of that step";
      case durable_errc::manifest_missing:
        return "no manifest: the save was never finished";
      case durable_errc::manifest_damaged:
        return "manifest damaged";
      case durable_errc::manifest_version:
        return "manifest of a newer version";
      case durable_errc::manifest_too_large:
        return "manifest over the size limit";
      case durable_errc::file_missing:
        return "file of the checkpoint missing";
      case durable_errc::file_size:
        return "file of the checkpoint has another size";
      case durable_errc::checksum_mismatch:
        return "checksum mismatch";
      case durable_errc::save_id_mismatch:
        return "file belongs to another save";
      case durable_errc::schema_mismatch:
        return "checkpoint and training state differ";
      case durable_errc::rule_mismatch:
        return "stored bytes follow another rule";
      case durable_errc::not_covered:
        return "file does not hold every element exactly once";
      case durable_errc::digest_mismatch:
        return "digest mismatch";
      case durable_errc::already_exists:
        return "another checkpoint of that step exists";
      case durable_errc::step_renamed:
        return "directory name and manifest disagree about the step";
    }
    return "unknown spillway.durable error " + std::to_string(code);
  }
};
inline constinit durable_category const durable_category_instance{};
}  // namespace detail

[[nodiscard]] inline std::error_code make_error_code(durable_errc code) noexcept {
  return {static_cast<int>(code), detail::durable_category_instance};
}

}  // namespace spillway::inline v0

template <>
struct std::is_error_code_enum<spillway::durable_errc> : std::true_type {};
