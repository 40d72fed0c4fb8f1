// SPDX-License-Identifier: Apache-2.0
/// Removes what is no longer wanted, after a commit only, and never anything that a save did not make.
#pragma once

#include <spillway/core/digest.hpp>
#include <spillway/durable/publish.hpp>
#include <spillway/durable/save_id.hpp>
#include <spillway/durable/step_directory.hpp>

#include <fcntl.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace spillway::inline v0 {

/// Every name that a save may give a file in its directory, manifest apart.
inline constexpr std::string_view parameters_file = "model.safetensors";
inline constexpr std::string_view generation_file = "optimizer-00000.safetensors";
inline constexpr std::string_view leaves_file = "leaves-00000.safetensors";

namespace detail {

template <FileSystem FS>
class collector {
 public:
  explicit collector(FS& fs) : fs_(&fs) {}

  /// Delete the files of ours in a directory of ours, then the directory. Another's file in it stays, and so does the directory.
  void remove(std::string const& directory) {
    // Not through a link: it would lead into a directory that is not ours.
    call_result const opened = fs_->open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC, 0);
    if (!opened.ok()) return note(opened.error(), "open", directory);
    static_cast<void>(fs_->close({static_cast<int>(opened.value)}));
    for (std::string_view const name : {std::string_view(manifest_name), std::string_view(manifest_temporary),
                                        parameters_file, generation_file, leaves_file}) {
      std::string const path = directory + '/' + std::string(name);
      note(fs_->unlink(path.c_str()).error(), "unlink", path);
    }
    note(fs_->remove_directory(directory.c_str()).error(), "remove directory", directory);
  }

  /// Take a committed checkpoint away: first its name, so that nobody takes the rest for one.
  void retire(std::string const& root, std::string const& directory) {
    std::string const trash = root + "/.trash-" + to_string(make_save_id());
    call_result const renamed = fs_->rename_exclusive(directory.c_str(), trash.c_str());
    if (!renamed.ok()) return note(renamed.error(), "rename", directory);
    try {
      sync_directory(*fs_, root);
    } catch (error const& failure) {
      warnings_.push_back(failure.what());
      return;  // whether it is still a checkpoint is not known: it has to stay whole
    }
    remove(trash);
  }

  [[nodiscard]] std::vector<std::string> take_warnings() { return std::move(warnings_); }

 private:
  void note(int code, std::string what, std::string const& path) {
    if (code == 0 || code == ENOENT) return;  // another process may have been faster
    warnings_.push_back(what + ' ' + path + ": " + std::system_category().message(code));
  }
  FS* fs_;
  std::vector<std::string> warnings_{};
};

/// Only files that a save made: a checkpoint in which someone keeps notes is not ours to delete.
template <FileSystem FS>
[[nodiscard]] bool only_ours(FS& fs, checkpoint_entry const& entry) {
  std::vector<std::string> names;
  call_result const listed = fs.list(entry.path.c_str(), names);
  if (!listed.ok()) return listed.error() == ENOENT;  // gone: another process was faster
  return std::all_of(names.begin(), names.end(), [](std::string const& name) {
    return name == manifest_name || name == parameters_file || name == generation_file || name == leaves_file;
  });
}

}  // namespace detail

/// Remove what killed saves and half-done removals left below `root`.
/// Pre      the caller holds the root's lock: nothing of it is in use.
/// Returns  what could not be removed, and why. Never fails.
template <FileSystem FS>
[[nodiscard]] std::vector<std::string> collect_leftovers(FS& fs, std::string const& root) {
  detail::collector<FS> collect{fs};
  std::vector<std::string> names;
  static_cast<void>(fs.list(root.c_str(), names));
  for (std::string const& name : names) {
    auto const parsed = parse_directory_name(name);
    if (parsed && parsed->is != directory_name::role::step) collect.remove(root + '/' + name);
    constexpr std::string_view latest = "LATEST.tmp-";
    if (name.substr(0, latest.size()) == latest && hash128_from(std::string_view(name).substr(latest.size()))) {
      static_cast<void>(fs.unlink((root + '/' + name).c_str()));
    }
  }
  return collect.take_warnings();
}

/// Keep the last `keep` complete checkpoints in the order in which they were saved, and `just_saved` in any case; 0 keeps all.
/// Incomplete ones don't count and are left alone.
/// Pre      `just_saved` is committed; the caller holds the root's lock.
/// Returns  what could not be removed, and why. Never fails.
template <FileSystem FS>
[[nodiscard]] std::vector<std::string> apply_retention(FS& fs, std::string const& root, unsigned keep,
                                                       std::string const& just_saved) {
  if (keep == 0) return {};
  std::vector<std::string> warnings;
  try {
    auto entries = scan_checkpoints(fs, root);
    std::erase_if(entries, [](checkpoint_entry const& entry) { return !entry.complete; });
    detail::collector<FS> collect{fs};
    for (std::size_t i = 0; i + keep < entries.size(); ++i) {
      if (entries[i].path == just_saved) continue;
      if (detail::only_ours(fs, entries[i])) {
        collect.retire(root, entries[i].path);
      } else {
        warnings.push_back(entries[i].path + " is kept: it holds files that no save made");
      }
    }
    for (std::string& warning : collect.take_warnings()) warnings.push_back(std::move(warning));
  } catch (std::exception const& failure) {
    warnings.push_back(failure.what());
  }
  return warnings;
}

}  // namespace spillway::inline v0
