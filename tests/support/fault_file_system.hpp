// SPDX-License-Identifier: Apache-2.0
/// A FileSystem that is the machine's own, except where a test says otherwise.
#pragma once

#include <spillway/io/file_system_concept.hpp>
#include <spillway/io/posix_file_system.hpp>

#include <fcntl.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

namespace test {

enum class call {
  open,
  close,
  read,
  write,
  size,
  allocate,
  truncate,
  sync_data,
  sync,
  lock,
  direct_alignment,
  make_directory,
  rename,
  rename_exclusive,
  unlink,
  remove_directory,
  list
};

/// What happens to the calls of one kind.
struct fault {
  std::uint64_t from = 1;   ///< the first call that it hits, counted from 1
  std::uint64_t every = 1;  ///< and then every so many
  std::uint64_t times = ~std::uint64_t{0};
  int error = 0;                          ///< fails with it, without doing anything
  std::size_t at_most = ~std::size_t{0};  ///< moves no more bytes than this
  unsigned delay_ms = 0;                  ///< sleeps first, so that others overtake
  bool throws = false;                    ///< breaks the promise that calls never throw
};

/// The faults and what was called; shared by the test and the file system inside an engine.
class fault_plan {
 public:
  void set(call kind, fault f) {
    std::lock_guard const lock(mutex_);
    faults_[kind] = f;
    counts_[kind] = hits_[kind] = 0;
  }
  void clear() {
    std::lock_guard const lock(mutex_);
    faults_.clear();
  }
  /// open() with O_DIRECT fails with EINVAL, as on file systems without direct I/O.
  void refuse_direct(bool refuse) {
    std::lock_guard const lock(mutex_);
    refuse_direct_ = refuse;
  }
  [[nodiscard]] bool direct_refused() const {
    std::lock_guard const lock(mutex_);
    return refuse_direct_;
  }
  /// Calls of this kind since its fault was set, or ever.
  [[nodiscard]] std::uint64_t count(call kind) const {
    std::lock_guard const lock(mutex_);
    auto const found = counts_.find(kind);
    return found == counts_.end() ? 0 : found->second;
  }
  /// The fault that hits this call, or one that does nothing.
  fault next(call kind) {
    std::lock_guard const lock(mutex_);
    std::uint64_t const n = ++counts_[kind];
    auto const found = faults_.find(kind);
    if (found == faults_.end()) return {};
    fault const& f = found->second;
    if (n < f.from || (n - f.from) % f.every != 0 || hits_[kind] == f.times) return {};
    ++hits_[kind];
    return f;
  }

 private:
  mutable std::mutex mutex_;
  std::map<call, fault> faults_;
  std::map<call, std::uint64_t> counts_;
  std::map<call, std::uint64_t> hits_;
  bool refuse_direct_ = false;
};

class fault_file_system {
 public:
  using call_result = spillway::call_result;
  using open_handle = spillway::open_handle;

  explicit fault_file_system(std::shared_ptr<fault_plan> plan = std::make_shared<fault_plan>())
      : plan_(std::move(plan)) {}
  [[nodiscard]] fault_plan& plan() const noexcept { return *plan_; }

  call_result open(char const* path, int flags, unsigned mode) {
    if ((flags & O_DIRECT) != 0 && plan_->direct_refused()) return {-EINVAL};
    return run(call::open, [&] { return posix_.open(path, flags, mode); });
  }
  call_result close(open_handle f) {
    return run(call::close, [&] { return posix_.close(f); });
  }
  call_result read(open_handle f, std::byte* to, std::size_t n, std::uint64_t offset) {
    return run(call::read, [&](std::size_t most) { return posix_.read(f, to, std::min(n, most), offset); });
  }
  call_result write(open_handle f, std::byte const* from, std::size_t n, std::uint64_t offset) {
    return run(call::write, [&](std::size_t most) { return posix_.write(f, from, std::min(n, most), offset); });
  }
  call_result size(open_handle f) {
    return run(call::size, [&] { return posix_.size(f); });
  }
  call_result allocate(open_handle f, std::uint64_t n) {
    return run(call::allocate, [&] { return posix_.allocate(f, n); });
  }
  call_result truncate(open_handle f, std::uint64_t n) {
    return run(call::truncate, [&] { return posix_.truncate(f, n); });
  }
  call_result sync_data(open_handle f) {
    return run(call::sync_data, [&] { return posix_.sync_data(f); });
  }
  call_result sync(open_handle f) {
    return run(call::sync, [&] { return posix_.sync(f); });
  }
  call_result lock(open_handle f) {
    return run(call::lock, [&] { return posix_.lock(f); });
  }
  call_result direct_alignment(open_handle f) {
    return run(call::direct_alignment, [&] { return posix_.direct_alignment(f); });
  }
  call_result make_directory(char const* path, unsigned mode) {
    return run(call::make_directory, [&] { return posix_.make_directory(path, mode); });
  }
  call_result rename(char const* from, char const* to) {
    return run(call::rename, [&] { return posix_.rename(from, to); });
  }
  call_result rename_exclusive(char const* from, char const* to) {
    return run(call::rename_exclusive, [&] { return posix_.rename_exclusive(from, to); });
  }
  call_result unlink(char const* path) {
    return run(call::unlink, [&] { return posix_.unlink(path); });
  }
  call_result remove_directory(char const* path) {
    return run(call::remove_directory, [&] { return posix_.remove_directory(path); });
  }
  call_result list(char const* path, std::vector<std::string>& names) {
    return run(call::list, [&] { return posix_.list(path, names); });
  }

 private:
  template <class Call>
  call_result run(call kind, Call&& make) {
    fault const f = plan_->next(kind);
    if (f.delay_ms != 0) std::this_thread::sleep_for(std::chrono::milliseconds{f.delay_ms});
    if (f.throws) throw std::runtime_error("a file system that throws");
    if (f.error != 0) return {-std::int64_t{f.error}};
    if constexpr (std::is_invocable_v<Call, std::size_t>) {
      return make(f.at_most);
    } else {
      return make();
    }
  }
  std::shared_ptr<fault_plan> plan_;
  spillway::posix_file_system posix_;
};
static_assert(spillway::FileSystem<fault_file_system>);

}  // namespace test
