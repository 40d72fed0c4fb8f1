// SPDX-License-Identifier: Apache-2.0
/// The files of one file_tier in its directory: names, how they are made, how those of dead processes are removed.
#pragma once

#include <spillway/core/bytes.hpp>
#include <spillway/core/error.hpp>
#include <spillway/io/file.hpp>
#include <spillway/io/file_system_concept.hpp>
#include <spillway/io/huge_buffer.hpp>

#include <fcntl.h>
#include <signal.h>
#include <sys/random.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>
#include <system_error>
#include <thread>
#include <vector>

namespace spillway::inline v0::detail {

/// "spillway-<pid>-<16 hex digits of this tier>-<n>" and a suffix: under 80 bytes, and never two alike.
inline constexpr std::string_view spill_prefix = "spillway-";
inline constexpr std::string_view spill_suffix = ".spill";  // in use, locked
inline constexpr std::string_view fresh_suffix = ".new";    // being made: not locked yet
inline constexpr std::string_view kept_suffix = ".kept";    // left on purpose

/// The pid in the name of a spill file, 0 when it is not one of ours (or is a kept one).
[[nodiscard]] inline long spill_file_pid(std::string_view name) noexcept {
  auto const drop = [&name](auto accept) {
    std::size_t n = 0;
    while (n < name.size() && accept(name[n])) ++n;
    name.remove_prefix(n);
    return n;
  };
  auto const digit = [](char c) { return c >= '0' && c <= '9'; };
  auto const hex = [digit](char c) { return digit(c) || (c >= 'a' && c <= 'f'); };
  auto const dash = [&name] {
    bool const there = name.starts_with('-');
    name.remove_prefix(there ? 1 : 0);
    return there;
  };
  if (!name.starts_with(spill_prefix)) return 0;
  name.remove_prefix(spill_prefix.size());
  long pid = 0;
  if (std::from_chars(name.data(), name.data() + name.size(), pid).ec != std::errc{} || pid <= 0) return 0;
  if (drop(digit) == 0 || !dash() || drop(hex) != 16 || !dash() || drop(digit) == 0) return 0;
  return name == spill_suffix || name == fresh_suffix ? pid : 0;
}

template <FileSystem FS>
class spill_files {
 public:
  /// Errors  what open says of the directory: missing, not a directory, not readable.
  spill_files(FS& fs, std::string directory) : fs_(&fs), directory_(std::move(directory)) {
    if (directory_.empty()) throw error{errc::invalid_option, {.where = "file_tier", .detail = "no directory"}};
    std::uint64_t token = 0;
    if (::getrandom(&token, sizeof token, 0) != static_cast<ssize_t>(sizeof token)) {
      throw error{last_system_error(), {.where = "file_tier getrandom"}};
    }
    char stem[64];
    std::snprintf(stem, sizeof stem, "spillway-%ld-%016llx-", static_cast<long>(::getpid()),
                  static_cast<unsigned long long>(token));
    stem_ = stem;
    try {
      static_cast<void>(file<FS>::open(*fs_, directory_, O_RDONLY | O_DIRECTORY));
    } catch (error const& failed) {
      rethrow(failed, "file_tier directory: ");
    }
  }

  [[nodiscard]] std::string const& directory() const noexcept { return directory_; }

  /// A new file of no bytes, locked, under a name that no other process will touch. It gets its lasting name only when
  /// it is locked: a sweep that saw the lasting name unlocked would take it for a dead process's.
  /// Errors  what the calls said, with the path and the user id.
  [[nodiscard]] file<FS> create(int extra_flags) {
    for (unsigned attempt = 0;; ++attempt) {
      std::string const base = path(stem_ + std::to_string(next_++));
      try {
        file<FS> made = file<FS>::open(*fs_, base + std::string(fresh_suffix),
                                       O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | extra_flags, 0600);
        made.lock();
        made.rename_exclusive(base + std::string(spill_suffix));
        return made;
      } catch (error const& failed) {
        // Another process swept the file before it was locked: once more, with another name.
        bool const swept = failed.code() == errc::busy || failed.code() == std::errc::no_such_file_or_directory;
        if (swept && attempt < 8) continue;
        rethrow(failed, "file_tier create: ");
      }
    }
  }
  void remove(file<FS>& f) noexcept {
    static_cast<void>(fs_->unlink(f.path()));
    f = file<FS>{};
  }
  /// Leaves the file, under a name that no sweep matches.
  void keep(file<FS>& f) noexcept {
    try {
      std::string_view base = f.path();
      base.remove_suffix(spill_suffix.size());
      f.rename_exclusive(std::string(base) + std::string(kept_suffix));
    } catch (std::exception const&) {  // it stays under its old name, and a later sweep removes it
    }
    f = file<FS>{};
  }

  /// Blocks for [0, n), or an error now and not in mid-run. Where blocks cannot be promised, zeros are written.
  void allocate(file<FS>& f, bytes n) {
    try {
      f.allocate(n);
    } catch (error const& failed) {
      if (failed.code() != std::errc::operation_not_supported) throw;
      huge_buffer const zeros{bytes{std::min<std::uint64_t>(n.count, 1U << 20U)}};
      for (bytes at{}; at < n; at += zeros.size()) {
        f.write_all(at, zeros.span().first(std::min((n - at).count, zeros.size().count)));
      }
    }
  }

  /// Removes the spill files of processes that are gone, and returns how many. Those locked by a living process stay.
  std::size_t sweep() {
    std::vector<std::string> names;
    if (call_result const listed = fs_->list(directory_.c_str(), names); !listed.ok()) {
      throw error{{listed.error(), std::system_category()}, {.where = "file_tier list", .path = directory_}};
    }
    std::size_t removed = 0;
    // A killed process keeps its locks until the kernel has finished its queued I/O: about 0.1 s after its death.
    auto const deadline = std::chrono::steady_clock::now() + std::chrono::seconds{2};
    for (std::string const& name : names) {
      long const pid = spill_file_pid(name);
      if (pid != 0 && free_of_owner(path(name), pid, deadline)) {
        removed += fs_->unlink(path(name).c_str()).ok() ? 1 : 0;
      }
    }
    return removed;
  }

 private:
  [[nodiscard]] std::string path(std::string_view name) const { return directory_ + "/" + std::string(name); }
  [[noreturn]] static void rethrow(error const& failed, char const* what) {
    error::context about = failed.about();
    about.where = what + about.where;
    about.detail += (about.detail.empty() ? "as user id " : ", as user id ") + std::to_string(::geteuid());
    throw error{failed.code(), about};
  }
  [[nodiscard]] bool free_of_owner(std::string const& candidate, long pid,
                                   std::chrono::steady_clock::time_point deadline) {
    try {
      file<FS> left_over = file<FS>::open(*fs_, candidate, O_RDWR | O_NOFOLLOW | O_NONBLOCK);
      for (;;) {
        if (fs_->lock(left_over.handle()).ok()) return true;
        bool const dead = ::kill(static_cast<pid_t>(pid), 0) != 0 && errno == ESRCH;
        if (!dead || std::chrono::steady_clock::now() > deadline) return false;
        std::this_thread::sleep_for(std::chrono::milliseconds{5});
      }
    } catch (error const&) {  // already gone, another user's, or a link that someone planted: not ours to remove
      return false;
    }
  }

  FS* fs_;
  std::string directory_;
  std::string stem_;
  std::uint64_t next_ = 0;
};

}  // namespace spillway::inline v0::detail
