// SPDX-License-Identifier: Apache-2.0
/// The FileSystem that is the machine's own.
#pragma once

#include <spillway/io/file_system_concept.hpp>

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

namespace spillway::inline v0 {

/// POSIX and Linux calls, one each. Stateless: all copies are the same file system.
/// Errors   none thrown: every call returns -errno.
/// Threads  safe.
class posix_file_system {
 public:
  /// Adds O_CLOEXEC: a lock that a child process inherits would outlive its owner.
  [[nodiscard]] static call_result open(char const* path, int flags, unsigned mode) noexcept {
    return result(::open(path, flags | O_CLOEXEC, static_cast<mode_t>(mode)));
  }
  /// Never retried: after EINTR Linux has closed the descriptor all the same.
  [[nodiscard]] static call_result close(open_handle f) noexcept { return result(::close(f.id)); }
  [[nodiscard]] static call_result read(open_handle f, std::byte* to, std::size_t n, std::uint64_t offset) noexcept {
    return result(::pread(f.id, to, n, static_cast<off_t>(offset)));
  }
  [[nodiscard]] static call_result write(open_handle f, std::byte const* from, std::size_t n,
                                         std::uint64_t offset) noexcept {
    return result(::pwrite(f.id, from, n, static_cast<off_t>(offset)));
  }
  [[nodiscard]] static call_result size(open_handle f) noexcept {
    struct stat about {};
    if (::fstat(f.id, &about) != 0) return {-std::int64_t{errno}};
    return {about.st_size};
  }
  /// fallocate(2), not posix_fallocate(3), which writes a byte a block where the file system cannot: -EOPNOTSUPP tells
  /// the caller, who knows whether writing is worth it.
  [[nodiscard]] static call_result allocate(open_handle f, std::uint64_t n) noexcept {
    if (n == 0) return {};
    return result(::fallocate(f.id, 0, 0, static_cast<off_t>(n)));
  }
  [[nodiscard]] static call_result truncate(open_handle f, std::uint64_t n) noexcept {
    return result(::ftruncate(f.id, static_cast<off_t>(n)));
  }
  [[nodiscard]] static call_result sync_data(open_handle f) noexcept { return result(::fdatasync(f.id)); }
  [[nodiscard]] static call_result sync(open_handle f) noexcept { return result(::fsync(f.id)); }
  [[nodiscard]] static call_result lock(open_handle f) noexcept { return result(::flock(f.id, LOCK_EX | LOCK_NB)); }
  /// 4096 when the kernel does not say (before 6.1, and tmpfs); -EOPNOTSUPP when it says that the file cannot.
  [[nodiscard]] static call_result direct_alignment(open_handle f) noexcept {
    struct statx about {};
    if (::statx(f.id, "", AT_EMPTY_PATH, STATX_DIOALIGN, &about) != 0) {
      return errno == ENOSYS || errno == EINVAL ? call_result{4096} : call_result{-std::int64_t{errno}};
    }
    if ((about.stx_mask & STATX_DIOALIGN) == 0) return {4096};
    if (about.stx_dio_offset_align == 0) return {-std::int64_t{EOPNOTSUPP}};
    return {std::int64_t{std::max(about.stx_dio_mem_align, about.stx_dio_offset_align)}};
  }
  [[nodiscard]] static call_result make_directory(char const* path, unsigned mode) noexcept {
    return result(::mkdir(path, static_cast<mode_t>(mode)));
  }
  [[nodiscard]] static call_result rename(char const* from, char const* to) noexcept {
    return result(std::rename(from, to));
  }
  /// Where the kernel or the file system lacks RENAME_NOREPLACE: a check, then a rename (two calls, and a window
  /// between them that only a file system without the flag has).
  [[nodiscard]] static call_result rename_exclusive(char const* from, char const* to) noexcept {
    call_result const outcome = result(::renameat2(AT_FDCWD, from, AT_FDCWD, to, RENAME_NOREPLACE));
    if (outcome.error() != EINVAL && outcome.error() != ENOSYS) return outcome;
    struct stat about {};
    if (::lstat(to, &about) == 0) return {-std::int64_t{EEXIST}};
    if (errno != ENOENT) return {-std::int64_t{errno}};
    return result(std::rename(from, to));
  }
  [[nodiscard]] static call_result unlink(char const* path) noexcept { return result(::unlink(path)); }
  [[nodiscard]] static call_result remove_directory(char const* path) noexcept { return result(::rmdir(path)); }
  /// Appends the names, in no order. Several calls: a listing is no snapshot.
  [[nodiscard]] static call_result list(char const* path, std::vector<std::string>& names) {
    DIR* const directory = ::opendir(path);
    if (directory == nullptr) return {-std::int64_t{errno}};
    std::int64_t count = 0;
    int failed = 0;
    for (;;) {
      errno = 0;
      dirent const* const entry = ::readdir(directory);  // this stream is ours alone: safe, by POSIX.1-2024
      if (entry == nullptr) {
        failed = errno;
        break;
      }
      std::string_view const name{entry->d_name};
      if (name == "." || name == "..") continue;
      names.emplace_back(name);
      ++count;
    }
    ::closedir(directory);
    return failed != 0 ? call_result{-std::int64_t{failed}} : call_result{count};
  }

 private:
  template <class Value>
  static call_result result(Value value) noexcept {
    return value < 0 ? call_result{-std::int64_t{errno}} : call_result{static_cast<std::int64_t>(value)};
  }
};
static_assert(FileSystem<posix_file_system>);

}  // namespace spillway::inline v0
