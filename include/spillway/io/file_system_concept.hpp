// SPDX-License-Identifier: Apache-2.0
/// The seam through which engines and durable saves reach files, so that a test can be the file system.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace spillway::inline v0 {

/// An open file of a FileSystem. A plain value; whoever opened it closes it.
struct open_handle {
  int id = -1;
  [[nodiscard]] constexpr bool valid() const noexcept { return id >= 0; }
};

/// What one call returned: a count or handle when >= 0, else -errno. Calls never throw: what to do about it is the caller's.
struct call_result {
  std::int64_t value = 0;
  [[nodiscard]] constexpr bool ok() const noexcept { return value >= 0; }
  [[nodiscard]] constexpr int error() const noexcept { return value < 0 ? static_cast<int>(-value) : 0; }
};

/// POSIX calls by another name; flags and modes are POSIX's. Requirements table: io/README.md.
/// Semantics the compiler can't check: each call is at most one system call and may do less than asked (short count, EINTR);
/// read and write carry their own offset; lock() is exclusive, does not wait and dies with the handle.
template <class F>
concept FileSystem = std::movable<F> &&
    requires(F& fs, char const* path, open_handle f, std::byte* to, std::byte const* from, std::size_t n,
             std::uint64_t offset, std::vector<std::string>& names) {
  { fs.open(path, 0, 0U) } -> std::same_as<call_result>;  // (path, O_ flags, mode) -> handle id
  { fs.close(f) } -> std::same_as<call_result>;
  { fs.read(f, to, n, offset) } -> std::same_as<call_result>;     // pread
  { fs.write(f, from, n, offset) } -> std::same_as<call_result>;  // pwrite
  { fs.size(f) } -> std::same_as<call_result>;
  { fs.allocate(f, offset) } -> std::same_as<call_result>;  // blocks for [0, n) exist and n is the size at least
  { fs.truncate(f, offset) } -> std::same_as<call_result>;
  { fs.sync_data(f) } -> std::same_as<call_result>;         // fdatasync
  { fs.sync(f) } -> std::same_as<call_result>;              // fsync; of a directory: its entries
  { fs.lock(f) } -> std::same_as<call_result>;              // -EWOULDBLOCK when another holds it
  { fs.direct_alignment(f) } -> std::same_as<call_result>;  // of a file open with O_DIRECT, for memory and offsets
  { fs.make_directory(path, 0U) } -> std::same_as<call_result>;
  { fs.rename(path, path) } -> std::same_as<call_result>;
  { fs.rename_exclusive(path, path) } -> std::same_as<call_result>;  // -EEXIST when the target is there, even if empty
  { fs.unlink(path) } -> std::same_as<call_result>;
  { fs.remove_directory(path) } -> std::same_as<call_result>;
  { fs.list(path, names) } -> std::same_as<call_result>;  // without . and ..
};

}  // namespace spillway::inline v0
