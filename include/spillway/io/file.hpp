// SPDX-License-Identifier: Apache-2.0
/// An open file with its path: what engines refer to, and what a durable save writes through.
#pragma once

#include <spillway/core/bytes.hpp>
#include <spillway/core/config.hpp>
#include <spillway/core/error.hpp>
#include <spillway/io/file_system_concept.hpp>
#include <spillway/io/posix_file_system.hpp>
#include <spillway/io/transfer_engine_concept.hpp>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <utility>

namespace spillway::inline v0 {

/// Owns an open file of `FS`; the FileSystem outlives it. A failure throws spillway::error with call, path and errno.
/// Threads  one at a time for the calls that change it (move, close); the others are as safe as the FileSystem's.
template <FileSystem FS = posix_file_system>
class file {
 public:
  file() noexcept = default;
  file(file&& other) noexcept
      : fs_(std::exchange(other.fs_, nullptr)),
        handle_(std::exchange(other.handle_, {})),
        path_(std::move(other.path_)) {}
  file& operator=(file&& other) noexcept {
    if (this != &other) {
      drop();
      fs_ = std::exchange(other.fs_, nullptr);
      handle_ = std::exchange(other.handle_, {});
      path_ = std::move(other.path_);
    }
    return *this;
  }
  /// Closes and cannot report: call close() where a failure matters.
  ~file() { drop(); }

  /// Errors  what open said, with the path.
  [[nodiscard]] static file open(FS& fs, std::string const& path, int flags, unsigned mode = 0600) {
    call_result const opened = retried([&] { return fs.open(path.c_str(), flags, mode); });
    if (!opened.ok()) raise("open", path, opened.error());
    file out;
    out.fs_ = &fs;
    out.handle_ = {static_cast<int>(opened.value)};
    out.keep_path(path);
    return out;
  }

  [[nodiscard]] bool valid() const noexcept { return handle_.valid(); }
  [[nodiscard]] char const* path() const noexcept { return path_ ? path_.get() : ""; }
  [[nodiscard]] open_handle handle() const noexcept { return handle_; }
  /// Stays good when the file is moved; ends with close().
  [[nodiscard]] file_reference reference() const noexcept { return {handle_, path()}; }

  /// All of `to`, or an error. Retries EINTR, continues short counts.
  /// Errors  short_transfer at end of file; what read said.
  void read_exact(bytes offset, std::span<std::byte> to) {
    std::size_t got = 0;
    while (got < to.size()) {
      call_result const moved = retried([&] {
        return fs_->read(handle_, to.data() + got, std::min(to.size() - got, largest_call), offset.count + got);
      });
      if (moved.value > 0) {
        got += static_cast<std::size_t>(moved.value);
        continue;
      }
      std::error_code code{moved.error(), std::system_category()};
      if (moved.ok()) code = errc::short_transfer;
      throw error{code, {"file read", path(), offset.count, bytes{to.size()}, bytes{got}, {}}};
    }
  }
  /// All of `from`, or an error. Retries EINTR, continues short counts.
  /// Errors  what write said; short_transfer when it moved nothing.
  void write_all(bytes offset, std::span<std::byte const> from) {
    std::size_t got = 0;
    while (got < from.size()) {
      call_result const moved = retried([&] {
        return fs_->write(handle_, from.data() + got, std::min(from.size() - got, largest_call), offset.count + got);
      });
      if (moved.value > 0) {
        got += static_cast<std::size_t>(moved.value);
        continue;
      }
      std::error_code code{moved.error(), std::system_category()};
      if (moved.ok()) code = errc::short_transfer;
      throw error{code, {"file write", path(), offset.count, bytes{from.size()}, bytes{got}, {}}};
    }
  }
  [[nodiscard]] bytes size() const {
    return bytes{static_cast<std::uint64_t>(checked("size", [&] { return fs_->size(handle_); }).value)};
  }
  /// Blocks for [0, n).
  /// Errors  ENOSPC and EDQUOT, with n as wanted; EOPNOTSUPP where the file system has no such call.
  void allocate(bytes n) {
    call_result const outcome = retried([&] { return fs_->allocate(handle_, n.count); });
    if (!outcome.ok()) {
      throw error{{outcome.error(), std::system_category()}, {"file allocate", path(), 0, n, {}, {}}};
    }
  }
  void truncate(bytes n) {
    checked("truncate", [&] { return fs_->truncate(handle_, n.count); });
  }
  /// Contents and attributes reach the medium. After a failure the contents are unknown: never trust them, never retry.
  void sync() {
    checked("sync", [&] { return fs_->sync(handle_); });
  }
  void sync_data() {
    checked("sync data", [&] { return fs_->sync_data(handle_); });
  }
  /// Exclusive, at once, until close.
  /// Errors  busy when another holds it.
  void lock() {
    call_result const outcome = retried([&] { return fs_->lock(handle_); });
    if (outcome.error() == EWOULDBLOCK) throw error{errc::busy, {"file lock", path(), 0, {}, {}, {}}};
    if (!outcome.ok()) raise("lock", path(), outcome.error());
  }
  /// Gives the file another name, where nothing is yet. Pre  no reference() is in use: the path changes.
  /// Errors  EEXIST when the name is taken; what rename said.
  void rename_exclusive(std::string const& to) {
    call_result const outcome = retried([&] { return fs_->rename_exclusive(path(), to.c_str()); });
    if (!outcome.ok()) {
      throw error{{outcome.error(), std::system_category()}, {"file rename", path(), 0, {}, {}, "to " + to}};
    }
    keep_path(to);
  }
  /// Closes and checks: some file systems report a failed write only here. The file is closed either way.
  void close() {
    if (!handle_.valid()) return;
    call_result const outcome = fs_->close(std::exchange(handle_, {}));
    if (!outcome.ok()) raise("close", path(), outcome.error());
  }

 private:
  static constexpr std::size_t largest_call = std::size_t{1} << 30U;  // Linux moves at most 2 GiB - 4 KiB a call

  template <class Call>
  static call_result retried(Call&& call) {
    call_result outcome = call();
    while (outcome.error() == EINTR) outcome = call();
    return outcome;
  }
  template <class Call>
  call_result checked(char const* name, Call&& call) const {
    call_result const outcome = retried(call);
    if (!outcome.ok()) raise(name, path(), outcome.error());
    return outcome;
  }
  [[noreturn]] static void raise(char const* name, std::string const& path, int code) {
    throw error{{code, std::system_category()}, {std::string("file ") + name, path, 0, {}, {}, {}}};
  }
  void keep_path(std::string const& path) {
    path_ = std::make_unique<char[]>(path.size() + 1);
    std::memcpy(path_.get(), path.c_str(), path.size() + 1);
  }
  void drop() noexcept {
    if (handle_.valid()) static_cast<void>(fs_->close(std::exchange(handle_, {})));
  }

  FS* fs_ = nullptr;
  open_handle handle_{};
  std::unique_ptr<char[]> path_{};  // not a std::string: references to it survive a move of the file
};

}  // namespace spillway::inline v0
