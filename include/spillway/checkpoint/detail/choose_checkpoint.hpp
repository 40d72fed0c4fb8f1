// SPDX-License-Identifier: Apache-2.0
/// Which checkpoint a restore takes. Never a silent fall-back.
#pragma once

#include <spillway/checkpoint/detail/read_checkpoint.hpp>
#include <spillway/core/error.hpp>
#include <spillway/durable/durable_errc.hpp>
#include <spillway/durable/step_directory.hpp>

#include <cstddef>
#include <cstdint>
#include <exception>
#include <optional>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

namespace spillway::inline v0::detail {

/// "steps 10, 20" of the complete ones; "no complete one" if there is none.
[[nodiscard]] inline std::string available_steps(std::vector<checkpoint_entry> const& entries) {
  std::string out;
  for (checkpoint_entry const& entry : entries) {
    if (entry.complete) out += (out.empty() ? "there are steps " : ", ") + std::to_string(entry.step);
  }
  return out.empty() ? "there is no complete one" : out;
}

/// The newest checkpoint other than `path` whose every byte is right, as a sentence.
template <FileSystem FS>
[[nodiscard]] std::string whole_alternative(FS& fs, std::vector<checkpoint_entry> const& entries,
                                            std::string const& path) {
  for (std::size_t i = entries.size(); i-- > 0;) {
    checkpoint_entry const& entry = entries[i];
    if (!entry.complete || entry.path == path) continue;
    try {
      open_checkpoint<FS>{fs, entry.path, *entry.record}.verify();
      return "step " + std::to_string(entry.step) + " at " + entry.path + " is whole; restore it by its number";
    } catch (std::exception const&) {
      continue;  // that one is no better, and not what was asked about
    }
  }
  return "no other checkpoint there is whole";
}

/// Throws `failure` again with the way out added.
[[noreturn]] inline void rethrow_with(error const& failure, std::string const& advice) {
  error::context about = failure.about();
  about.detail += (about.detail.empty() ? "" : "; ") + advice;
  throw error{failure.code(), std::move(about)};
}

struct chosen_checkpoint {
  checkpoint_entry entry{};
  std::vector<std::string> notes{};  ///< what was passed over, and why
};

/// The one of that step; without a step the one saved last.
/// Errors   durable_errc: nothing_there, only_incomplete, step_missing, or what is wrong with the one that should be taken.
template <FileSystem FS>
[[nodiscard]] chosen_checkpoint choose_checkpoint(FS& fs, std::string const& root,
                                                  std::vector<checkpoint_entry>& entries,
                                                  std::optional<std::uint64_t> step) {
  auto const refuse = [&](durable_errc code, std::string why) {
    throw error{code, {.where = "checkpoint restore", .path = root, .detail = std::move(why)}};
  };
  auto const refuse_entry = [&](checkpoint_entry const& entry) {
    throw error{entry.code,
                {.where = "checkpoint restore",
                 .path = entry.path,
                 .detail = entry.why + "; " + whole_alternative(fs, entries, entry.path)}};
  };
  std::string incomplete;
  for (checkpoint_entry const& entry : entries) {
    if (!entry.complete) incomplete += (incomplete.empty() ? "" : "; ") + entry.why;
  }

  if (step) {
    std::string const path = root + '/' + step_name(*step);
    for (checkpoint_entry& entry : entries) {
      if (entry.path != path) continue;
      if (!entry.complete) refuse_entry(entry);
      return {entry, {}};
    }
    if (entries.empty()) refuse(durable_errc::nothing_there, "step " + std::to_string(*step) + " was asked for");
    refuse(durable_errc::step_missing, "step " + std::to_string(*step) + " was asked for; " + available_steps(entries));
  }

  if (entries.empty()) refuse(durable_errc::nothing_there, {});
  checkpoint_entry& newest = entries.back();  // complete ones come last
  if (!newest.complete) {
    for (std::size_t i = entries.size(); i-- > 0;) {
      if (entries[i].code != durable_errc::manifest_missing) refuse_entry(entries[i]);  // finished once, damaged since
    }
    refuse(durable_errc::only_incomplete, incomplete);
  }
  chosen_checkpoint chosen{newest, {}};
  for (checkpoint_entry const& entry : entries) {
    if (entry.complete) continue;
    // A manifest is the mark of a finished save: one that was finished and is newer, yet damaged, is a loss to be told.
    bool const newer = entry.record ? entry.record->sequence > newest.record->sequence : entry.step > newest.step;
    if (entry.code != durable_errc::manifest_missing && newer) refuse_entry(entry);
    chosen.notes.push_back("passed over: " + entry.why);
  }
  return chosen;
}

}  // namespace spillway::inline v0::detail
