// SPDX-License-Identifier: Apache-2.0
/// The directories that saves make below a root: their names, and which of them are whole.
#pragma once

#include <spillway/core/digest.hpp>
#include <spillway/core/error.hpp>
#include <spillway/durable/durable_errc.hpp>
#include <spillway/durable/manifest.hpp>
#include <spillway/durable/manifest_io.hpp>
#include <spillway/io/file.hpp>

#include <fcntl.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

namespace spillway::inline v0 {

/// What a name below a root says. Only names that the library makes are taken; it never touches another.
struct directory_name {
  enum class role : std::uint8_t {
    step,        ///< step-00001234: committed, if its manifest says so
    unfinished,  ///< step-00001234.tmp-<save id>
    trash,       ///< .trash-<id>
  };
  role is = role::step;
  std::uint64_t step = 0;
};

[[nodiscard]] inline std::string step_name(std::uint64_t step) {
  std::string digits = std::to_string(step);
  if (digits.size() < 8) digits.insert(0, 8 - digits.size(), '0');
  return "step-" + digits;
}

/// Errors   none; noexcept but for memory.
/// Threads  safe.
[[nodiscard]] inline std::optional<directory_name> parse_directory_name(std::string_view name) {
  using role = directory_name::role;
  constexpr std::string_view trash = ".trash-";
  if (name.substr(0, trash.size()) == trash) {
    if (!hash128_from(name.substr(trash.size()))) return std::nullopt;
    return directory_name{role::trash, 0};
  }
  constexpr std::string_view temporary = ".tmp-";
  role is = role::step;
  if (auto const dot = name.find('.'); dot != std::string_view::npos) {
    if (name.substr(dot, temporary.size()) != temporary || !hash128_from(name.substr(dot + temporary.size())))
      return std::nullopt;
    name = name.substr(0, dot);
    is = role::unfinished;
  }
  std::uint64_t step = 0;
  std::string_view const digits = name.substr(std::min<std::size_t>(5, name.size()));
  auto const [end, wrong] = std::from_chars(digits.data(), digits.data() + digits.size(), step);
  if (wrong != std::errc{} || end != digits.data() + digits.size() || name != step_name(step)) return std::nullopt;
  return directory_name{is, step};
}

/// One directory of a save, as a scan found it.
struct checkpoint_entry {
  std::uint64_t step = 0;
  std::string path{};
  bool complete =
      false;          ///< its manifest is whole and every file has its size; contents are verified when it is restored
  std::string why{};  ///< not complete: what is wrong
  std::error_code code{};
  std::optional<manifest> record{};  ///< where the manifest itself is whole
};

/// The manifest of a checkpoint's directory.
/// Errors   durable_errc: manifest_missing, manifest_damaged, manifest_version, manifest_too_large; errno; each with the path.
template <FileSystem FS>
[[nodiscard]] manifest read_manifest(FS& fs, std::string const& directory) {
  std::string const path = directory + '/' + manifest_name;
  file<FS> record;
  try {
    record = file<FS>::open(fs, path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  } catch (error const& failure) {
    if (failure.code() != std::errc::no_such_file_or_directory) throw;
    throw error{durable_errc::manifest_missing, {.where = "checkpoint", .path = path}};
  }
  bytes const size = record.size();
  if (size > manifest_limit) {
    throw error{durable_errc::manifest_too_large,
                {.where = "manifest", .path = path, .wanted = size, .got = manifest_limit}};
  }
  std::string text(size.count, '\0');
  record.read_exact(bytes{}, std::as_writable_bytes(std::span{text}));
  return parse_manifest(text, path);
}

/// That every file of the manifest is there and has exactly its size.
/// Errors   durable_errc: file_missing, file_size; errno; each with the path.
template <FileSystem FS>
void check_files(FS& fs, std::string const& directory, manifest const& record) {
  for (file_record const& wanted : record.files) {
    std::string path = directory + '/' + wanted.name;
    file<FS> found;
    try {
      found = file<FS>::open(fs, path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    } catch (error const& failure) {
      if (failure.code() != std::errc::no_such_file_or_directory) throw;
      throw error{durable_errc::file_missing, {.where = "checkpoint file", .path = std::move(path)}};
    }
    if (bytes const size = found.size(); size != wanted.size) {
      throw error{durable_errc::file_size,
                  {.where = "checkpoint file", .path = std::move(path), .wanted = wanted.size, .got = size}};
    }
  }
}

/// Every directory of a save below `root`, newest last: by the order in which they were saved, incomplete ones before. An entry
/// that can't be read is listed with the reason and ends nothing. No such root: nothing.
/// Errors   errno when the root exists and can't be listed.
/// Threads  safe; a listing is no snapshot.
template <FileSystem FS>
[[nodiscard]] std::vector<checkpoint_entry> scan_checkpoints(FS& fs, std::string const& root) {
  std::vector<std::string> names;
  if (call_result const listed = fs.list(root.c_str(), names); !listed.ok()) {
    if (listed.error() == ENOENT) return {};
    throw error{{listed.error(), std::system_category()}, {.where = "checkpoint directory list", .path = root}};
  }
  std::vector<checkpoint_entry> found;
  for (std::string const& name : names) {
    auto const parsed = parse_directory_name(name);
    if (!parsed || parsed->is == directory_name::role::trash) continue;
    checkpoint_entry entry{.step = parsed->step, .path = root + '/' + name};
    if (parsed->is == directory_name::role::unfinished) {
      entry.code = durable_errc::manifest_missing;
      entry.why = entry.path + ": a save that was not finished";
    } else {
      try {
        entry.record = read_manifest(fs, entry.path);
        if (entry.record->step != entry.step) {
          throw error{durable_errc::step_renamed,
                      {.where = "checkpoint",
                       .path = entry.path,
                       .detail = "the manifest is of step " + std::to_string(entry.record->step)}};
        }
        check_files(fs, entry.path, *entry.record);
        entry.complete = true;
      } catch (std::system_error const& failure) {
        entry.code = failure.code();
        entry.why = failure.what();
      } catch (std::exception const& failure) {
        entry.code = durable_errc::manifest_damaged;
        entry.why = entry.path + ": " + failure.what();
      }
    }
    found.push_back(std::move(entry));
  }
  auto const key = [](checkpoint_entry const& entry) {
    return std::tuple{entry.complete, entry.record ? entry.record->sequence : 0, entry.step};
  };
  std::sort(found.begin(), found.end(), [&key](auto const& a, auto const& b) { return key(a) < key(b); });
  return found;
}

}  // namespace spillway::inline v0
