// SPDX-License-Identifier: Apache-2.0
/// The least that models FileSystem, and a near miss per requirement.
#pragma once

#include <spillway/io/file_system_concept.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace spillway::inline v0::testing {

struct minimal_file_system {
  explicit minimal_file_system(int) noexcept {}  // no default constructor, no copy
  minimal_file_system(minimal_file_system&&) noexcept = default;
  minimal_file_system& operator=(minimal_file_system&&) noexcept = default;
  ~minimal_file_system() = default;
  call_result open(char const*, int, unsigned) { return {}; }
  call_result close(open_handle) { return {}; }
  call_result read(open_handle, std::byte*, std::size_t, std::uint64_t) { return {}; }
  call_result write(open_handle, std::byte const*, std::size_t, std::uint64_t) { return {}; }
  call_result size(open_handle) { return {}; }
  call_result allocate(open_handle, std::uint64_t) { return {}; }
  call_result truncate(open_handle, std::uint64_t) { return {}; }
  call_result sync_data(open_handle) { return {}; }
  call_result sync(open_handle) { return {}; }
  call_result lock(open_handle) { return {}; }
  call_result direct_alignment(open_handle) { return {}; }
  call_result make_directory(char const*, unsigned) { return {}; }
  call_result rename(char const*, char const*) { return {}; }
  call_result rename_exclusive(char const*, char const*) { return {}; }
  call_result unlink(char const*) { return {}; }
  call_result remove_directory(char const*) { return {}; }
  call_result list(char const*, std::vector<std::string>&) { return {}; }
};

namespace near_miss {

struct file_system_not_movable : minimal_file_system {
  using minimal_file_system::minimal_file_system;
  file_system_not_movable(file_system_not_movable&&) = delete;
  file_system_not_movable& operator=(file_system_not_movable&&) = delete;
  ~file_system_not_movable() = default;
};
// Each lacks one call.
struct file_system_without_open : minimal_file_system {
  call_result open(char const*, int, unsigned) = delete;
};
struct file_system_without_close : minimal_file_system {
  call_result close(open_handle) = delete;
};
struct file_system_without_read : minimal_file_system {
  call_result read(open_handle, std::byte*, std::size_t, std::uint64_t) = delete;
};
struct file_system_without_write : minimal_file_system {
  call_result write(open_handle, std::byte const*, std::size_t, std::uint64_t) = delete;
};
struct file_system_without_size : minimal_file_system {
  call_result size(open_handle) = delete;
};
struct file_system_without_allocate : minimal_file_system {
  call_result allocate(open_handle, std::uint64_t) = delete;
};
struct file_system_without_truncate : minimal_file_system {
  call_result truncate(open_handle, std::uint64_t) = delete;
};
struct file_system_without_sync_data : minimal_file_system {
  call_result sync_data(open_handle) = delete;
};
struct file_system_without_sync : minimal_file_system {
  call_result sync(open_handle) = delete;
};
struct file_system_without_lock : minimal_file_system {
  call_result lock(open_handle) = delete;
};
struct file_system_without_direct_alignment : minimal_file_system {
  call_result direct_alignment(open_handle) = delete;
};
struct file_system_without_make_directory : minimal_file_system {
  call_result make_directory(char const*, unsigned) = delete;
};
struct file_system_without_rename : minimal_file_system {
  call_result rename(char const*, char const*) = delete;
};
struct file_system_without_rename_exclusive : minimal_file_system {
  call_result rename_exclusive(char const*, char const*) = delete;
};
struct file_system_without_unlink : minimal_file_system {
  call_result unlink(char const*) = delete;
};
struct file_system_without_remove_directory : minimal_file_system {
  call_result remove_directory(char const*) = delete;
};
struct file_system_without_list : minimal_file_system {
  call_result list(char const*, std::vector<std::string>&) = delete;
};
// A call that returns what the system call returns, with the error left in errno.
struct file_system_read_returns_count : minimal_file_system {
  std::int64_t read(open_handle, std::byte*, std::size_t, std::uint64_t) { return 0; }
};
struct file_system_write_takes_mutable_bytes : minimal_file_system {
  call_result write(open_handle, std::byte*, std::size_t, std::uint64_t) { return {}; }
};

}  // namespace near_miss

}  // namespace spillway::inline v0::testing
