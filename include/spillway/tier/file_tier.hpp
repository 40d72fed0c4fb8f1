// SPDX-License-Identifier: Apache-2.0
/// The MemoryTier in files: one preallocated, locked file a region.
#pragma once

#include <spillway/core/bytes.hpp>
#include <spillway/core/config.hpp>
#include <spillway/core/error.hpp>
#include <spillway/core/transfer_concept.hpp>
#include <spillway/io/file.hpp>
#include <spillway/io/huge_buffer.hpp>
#include <spillway/io/thread_engine.hpp>
#include <spillway/io/transfer_engine_concept.hpp>
#include <spillway/tier/detail/spill_files.hpp>
#include <spillway/tier/memory_tier_concept.hpp>

#include <fcntl.h>

#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <system_error>
#include <utility>

namespace spillway::inline v0 {

/// Whether spill files bypass the page cache.
enum class direct_io {
  automatic,  ///< if the file system can; the report says which it is, and why
  required,   ///< or an error
  off,
};

struct file_tier_options {
  std::string directory;              ///< exists and can be written
  bytes capacity{~std::uint64_t{0}};  ///< all regions together; the default leaves it to the file system
  direct_io direct = direct_io::automatic;
  bool keep = false;  ///< leave the files at an orderly end, renamed to *.kept
};

struct file_tier_report {
  engine_report engine{};
  bool direct = false;
  std::string direct_reason{};  ///< why it is direct or not
  bytes alignment{};            ///< that the file system asked for; the tier's trait is never less
  std::string directory{};
  std::size_t swept = 0;  ///< files of dead processes that were removed at the start
};

/// A region is a file of its own, with its blocks allocated, open and locked until it is deallocated. Files are
/// removed at an orderly end; those of a killed process by the next file_tier in the same directory. A region's
/// padding up to `traits.alignment` belongs to it: a transfer may reach round_up(size, alignment). A fresh region
/// reads as zeros.
/// Threads  allocate, deallocate, flush: one at a time and beside no transfer start; read and write: as the engine's.
template <TransferEngine Engine = thread_engine<>>
class file_tier {
 public:
  using file_system_type = typename Engine::file_system_type;
  static constexpr tier_traits traits{.alignment = bytes{4096}};

  /// Errors  what the system says of the directory (missing, no directory, not writable), with path and user id;
  ///         unsupported when direct I/O is required and the file system refuses it; invalid_option.
  file_tier(Engine engine, file_tier_options options)
      : state_(std::make_unique<state>(std::move(engine), std::move(options))) {
    state_->swept = state_->files.sweep();
    state_->probe_direct();
  }

  /// Errors  capacity_exceeded, with what is left; ENOSPC, with path and bytes wanted; what create and lock said.
  [[nodiscard]] region allocate(bytes n) {
    state& s = *state_;
    bytes const left = s.options.capacity - s.used;
    if (n > left || padded(n) > left) {
      throw error{errc::capacity_exceeded,
                  {.where = "file_tier allocate", .path = s.options.directory, .wanted = n, .got = left}};
    }
    std::uint64_t const id = s.next_id++;
    if (n.count == 0) return {id, n};
    file<file_system_type> made = s.files.create(s.direct ? O_DIRECT : 0);
    try {
      s.files.allocate(made, padded(n));
      s.regions.try_emplace(id).first->second.file = std::move(made);
    } catch (...) {
      s.files.remove(made);
      throw;
    }
    s.used += padded(n);
    return {id, n};
  }
  void deallocate(region r) noexcept {
    if (r.size.count == 0) return;
    auto const found = state_->regions.find(r.id);
    SPILLWAY_EXPECTS(found != state_->regions.end());
    state_->files.remove(found->second.file);
    state_->regions.erase(found);
    state_->used -= padded(r.size);
  }
  /// Pre     offset, to.data() and to.size() are multiples of traits.alignment; the range lies in r.
  /// Errors  by the token: what the engine says.
  [[nodiscard]] auto read(region r, bytes offset, std::span<std::byte> to) {
    check(r, offset, to.data(), to.size());
    return state_->engine.read(to.empty() ? file_reference{} : at(r).file.reference(), offset, to);
  }
  /// Pre     offset, from.data() and from.size() are multiples of traits.alignment; the range lies in r.
  /// Errors  by the token: what the engine says.
  [[nodiscard]] auto write(region r, bytes offset, std::span<std::byte const> from) {
    check(r, offset, from.data(), from.size());
    if (from.empty()) return state_->engine.write(file_reference{}, offset, from);
    entry& e = at(r);
    e.dirty.store(true, std::memory_order_relaxed);
    return state_->engine.write(e.file.reference(), offset, from);
  }
  /// Waits for every transfer of this tier, then syncs the files written since the last flush.
  /// Errors  what fdatasync said, and again at every later flush: after a failed sync the contents are unknown.
  completed flush() {
    state_->engine.drain();
    for (auto& [id, e] : state_->regions) {
      if (!e.dirty.load(std::memory_order_relaxed)) continue;
      if (e.sync_failed)
        throw error{e.sync_failed, {.where = "file_tier flush, after a failed sync", .path = e.file.path()}};
      try {
        e.file.sync_data();
      } catch (error const& failed) {
        e.sync_failed = failed.code();
        throw;
      }
      e.dirty.store(false, std::memory_order_relaxed);
    }
    return {};
  }
  [[nodiscard]] bytes capacity() const noexcept { return state_->options.capacity; }
  [[nodiscard]] file_tier_report report() const {
    state const& s = *state_;
    return {s.engine.report(), s.direct, s.direct_reason, s.alignment, s.options.directory, s.swept};
  }

 private:
  struct entry {
    spillway::file<file_system_type> file;
    std::atomic<bool> dirty{false};
    std::error_code sync_failed{};
  };
  struct state {  // not movable: files point at the engine's file system
    state(Engine e, file_tier_options o)
        : engine(std::move(e)), options(std::move(o)), files(engine.file_system(), options.directory) {}
    state(state const&) = delete;
    state& operator=(state const&) = delete;
    ~state() {
      engine.drain();
      for (auto& [id, e] : regions) options.keep ? files.keep(e.file) : files.remove(e.file);
    }
    /// Tries it on a file: some file systems accept the flag and refuse the transfer. The same file shows that the
    /// directory can be written.
    void probe_direct() {
      auto tried = files.create(0);
      direct_reason = options.direct == direct_io::off ? "off" : why_not_direct(tried.path());
      files.remove(tried);
      direct = direct_reason.empty();
      if (direct) direct_reason = "probed: a direct write works";
      if (!direct && options.direct == direct_io::required) {
        throw error{errc::unsupported,
                    {.where = "file_tier direct I/O", .path = options.directory, .detail = direct_reason}};
      }
    }
    std::string why_not_direct(char const* path) {
      auto& fs = engine.file_system();
      try {
        auto f = spillway::file<file_system_type>::open(fs, path, O_RDWR | O_DIRECT | O_NOFOLLOW);
        call_result const wanted = fs.direct_alignment(f.handle());
        if (!wanted.ok()) return std::string("statx: ") + std::strerror(wanted.error());
        alignment = bytes{static_cast<std::uint64_t>(wanted.value)};
        if (alignment > traits.alignment) return "the file system wants " + to_string(alignment) + " alignment";
        huge_buffer const block{traits.alignment};
        f.write_all({}, block.span());
        f.read_exact({}, block.span());
      } catch (error const& failed) {
        if (failed.code() == std::errc::no_space_on_device || failed.code().value() == EDQUOT) throw;
        return failed.what();
      }
      return {};
    }

    Engine engine;
    file_tier_options options;
    detail::spill_files<file_system_type> files;
    std::map<std::uint64_t, entry> regions;
    bytes used{};
    std::uint64_t next_id = 1;
    bool direct = false;
    std::string direct_reason;
    bytes alignment{};
    std::size_t swept = 0;
  };

  static constexpr bytes padded(bytes n) noexcept { return round_up(n, traits.alignment); }
  static void check(region r, bytes offset, std::byte const* data, std::size_t n) noexcept {
    constexpr std::uint64_t alignment = traits.alignment.count;
    SPILLWAY_EXPECTS(offset.count % alignment == 0 && n % alignment == 0);
    SPILLWAY_EXPECTS(n == 0 || reinterpret_cast<std::uintptr_t>(data) % alignment == 0);
    SPILLWAY_EXPECTS(offset <= padded(r.size) && n <= (padded(r.size) - offset).count);
  }
  [[nodiscard]] entry& at(region r) noexcept {
    auto const found = state_->regions.find(r.id);
    SPILLWAY_EXPECTS(found != state_->regions.end());
    return found->second;
  }

  std::unique_ptr<state> state_;
};
static_assert(MemoryTier<file_tier<>>);

}  // namespace spillway::inline v0
