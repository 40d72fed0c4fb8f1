// SPDX-License-Identifier: Apache-2.0
/// Where checkpoints go, and which one a run goes on from.
#pragma once

#include <spillway/checkpoint/checkpoint_store.hpp>
#include <spillway/core/error.hpp>
#include <spillway/durable/durable_errc.hpp>
#include <spillway/durable/step_directory.hpp>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace train_gpt {

/// The directory of checkpoints, and which step of it.
struct resume_point {
  std::string root;
  std::optional<std::uint64_t> step{};
};

/// `path` is the directory of all checkpoints or one step-* in it.
[[nodiscard]] inline resume_point parse_resume(std::string path) {
  while (path.size() > 1 && path.back() == '/') path.pop_back();
  std::size_t const slash = path.rfind('/');
  auto const last = spillway::parse_directory_name(slash == std::string::npos ? path : path.substr(slash + 1));
  if (!last || last->is != spillway::directory_name::role::step) return {std::move(path)};
  return {slash == std::string::npos ? "." : path.substr(0, std::max<std::size_t>(slash, 1)), last->step};
}

/// A fresh run must not mix its checkpoints with those of another; a resumed one needs one to resume.
/// Errors   spillway::error naming the directory. Nothing is made or changed.
inline void check_checkpoints(std::string const& fresh_root, std::string const& resume) {
  if (!resume.empty()) {
    resume_point const from = parse_resume(resume);
    if (spillway::list_checkpoints(from.root).empty()) {
      throw spillway::error{spillway::durable_errc::nothing_there, {.where = "--resume", .path = from.root}};
    }
    return;
  }
  for (auto const& entry : spillway::list_checkpoints(fresh_root)) {
    // What a killed save left is no checkpoint; the next save removes it.
    if (parse_resume(entry.path).step) {
      throw spillway::error{spillway::errc::invalid_option,
                            {.where = "--checkpoint",
                             .path = fresh_root,
                             .detail = "has checkpoints already; --resume it, or name another directory"}};
    }
  }
}

/// The run goes on from a step before others that are there: their names are taken, and one that is damaged would stop the save
/// of that step. They get a name that is no checkpoint's. Returns what was renamed to what.
/// Errors   errno with the path.
template <class Store>
std::vector<std::string> set_later_aside(Store& store, std::uint64_t step) {
  std::vector<std::string> notes;
  for (auto const& entry : store.list()) {
    auto const found = parse_resume(entry.path).step;
    if (!found || *found <= step) continue;
    for (unsigned n = 1;; ++n) {
      std::string const name = entry.path + ".aside-" + std::to_string(n);
      spillway::posix_file_system files;
      spillway::call_result const renamed = files.rename_exclusive(entry.path.c_str(), name.c_str());
      if (renamed.error() == EEXIST) continue;
      if (!renamed.ok()) {
        throw spillway::error{{renamed.error(), std::system_category()}, {.where = "rename to", .path = name}};
      }
      notes.push_back("set aside: " + entry.path + " is now " + name);
      break;
    }
  }
  return notes;
}

}  // namespace train_gpt
