// SPDX-License-Identifier: Apache-2.0
/// The TransferEngine that works everywhere: blocking calls on a fixed number of threads.
#pragma once

#include <spillway/core/bytes.hpp>
#include <spillway/core/error.hpp>
#include <spillway/core/transfer.hpp>
#include <spillway/io/detail/file_operation.hpp>
#include <spillway/io/posix_file_system.hpp>
#include <spillway/io/transfer_engine_concept.hpp>

#include <boost/asio/post.hpp>
#include <boost/asio/thread_pool.hpp>
#include <boost/system/system_error.hpp>
#include <cerrno>
#include <chrono>
#include <concepts>
#include <condition_variable>
#include <cstddef>
#include <exception>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <system_error>
#include <thread>
#include <utility>

namespace spillway::inline v0 {

struct thread_engine_options {
  unsigned threads = 8;        ///< calls in flight at most; each thread sleeps in its call
  bytes request{4ULL << 20U};  ///< largest call; a multiple of 4096
  std::string reason{"chosen by type: io_uring was not tried"};  ///< for the report, when the program knows why
};

namespace detail {

/// The threads' side. Lives until the engine and its last token are gone; the threads and all I/O end with the engine.
template <FileSystem FS>
class thread_engine_core {
 public:
  thread_engine_core(FS fs, thread_engine_options const& options)
      : fs_(std::move(fs)), queues_(options.request), threads_(options.threads) {
    try {
      for (unsigned i = 0; i < options.threads; ++i) boost::asio::post(threads_, [this] { serve(); });
    } catch (...) {  // the pool's destructor joins those that serve already
      std::lock_guard const lock(mutex_);
      stopping_ = true;
      work_.notify_all();
      throw;
    }
  }
  thread_engine_core(thread_engine_core const&) = delete;
  thread_engine_core& operator=(thread_engine_core const&) = delete;

  [[nodiscard]] FS& file_system() noexcept { return fs_; }

  [[nodiscard]] transfer start(file_reference file, bytes offset, std::byte* data, std::size_t size, bool writes) {
    if (size == 0) return {};
    std::lock_guard const lock(mutex_);
    file_operation& op = pool_.take();
    op.drive = &drive;
    op.release = &release;
    op.file = file;
    op.data = data;
    op.offset = offset.count;
    op.size = size;
    op.writes = writes;
    op.engine = this;
    ++in_flight_;
    queues_.push(op);
    size <= queues_.request() ? work_.notify_one() : work_.notify_all();
    return transfer{op};
  }
  void drain() noexcept {
    std::unique_lock lock(mutex_);
    idle_.wait(lock, [this] { return in_flight_ == 0; });
  }
  /// The engine dies: the threads end, which do all that is queued first, and with the last token the core does.
  static void retire(thread_engine_core* core) noexcept {
    std::unique_lock lock(core->mutex_);
    core->stopping_ = true;
    core->work_.notify_all();
    lock.unlock();
    core->threads_.join();
    lock.lock();
    core->orphaned_ = true;
    bool const last = core->pool_.taken() == 0;
    lock.unlock();
    if (last) delete core;
  }

 private:
  static bool drive(transfer::operation& base, bool block) noexcept {
    auto& op = static_cast<file_operation&>(base);
    if (op.finished.load(std::memory_order_acquire) == 0) {
      if (!block) return false;
      op.finished.wait(0, std::memory_order_acquire);
    }
    deliver(op);
    return true;
  }
  static void release(transfer::operation& base) noexcept {
    auto& op = static_cast<file_operation&>(base);
    auto* const core = static_cast<thread_engine_core*>(op.engine);
    std::unique_lock lock(core->mutex_);
    core->pool_.give(op);
    bool const last = core->orphaned_ && core->pool_.taken() == 0;
    lock.unlock();
    if (last) delete core;
  }

  void serve() noexcept {
    std::unique_lock lock(mutex_);
    for (;;) {
      work_.wait(lock, [this] { return stopping_ || !queues_.empty(); });
      file_piece piece = queues_.take();
      if (piece.of == nullptr) return;
      file_operation& op = *piece.of;
      lock.unlock();
      std::exception_ptr thrown;
      std::error_code failed;
      try {
        failed = move_piece(piece);
      } catch (...) {  // a FileSystem that breaks its promise must not leave a waiter behind
        thrown = std::current_exception();
      }
      lock.lock();
      if (failed) record_failure(piece, failed);
      if (thrown) op.outcome = std::move(thrown);
      if (failed || op.outcome) queues_.abandon(op);
      if (--op.running != 0 || op.handed_out != op.size) continue;
      op.outcome = describe(op, "thread_engine");
      op.finished.store(1, std::memory_order_release);
      op.finished.notify_all();
      if (--in_flight_ == 0) idle_.notify_all();
    }
  }
  /// All of the piece, or the error that stopped it.
  std::error_code move_piece(file_piece& piece) {
    file_operation const& op = *piece.of;
    while (piece.left() != 0) {
      call_result const call = op.writes ? fs_.write(op.file.handle, piece.where(), piece.left(), piece.position())
                                         : fs_.read(op.file.handle, piece.where(), piece.left(), piece.position());
      if (call.value > 0) {
        piece.moved += static_cast<std::uint64_t>(call.value);
        piece.again = 0;
        continue;
      }
      if (call.value == 0) return errc::short_transfer;
      if (call.error() == EINTR) continue;
      if (call.error() == EAGAIN && piece.again++ < again_limit) {
        std::this_thread::sleep_for(std::chrono::milliseconds{1});
        continue;
      }
      if (call.error() == EINVAL && past_end(piece, fs_)) return errc::short_transfer;
      return {call.error(), std::system_category()};
    }
    return {};
  }

  FS fs_;
  std::mutex mutex_;
  std::condition_variable work_;
  std::condition_variable idle_;
  direction_queues queues_;
  operation_pool pool_;
  std::size_t in_flight_ = 0;
  bool stopping_ = false;
  bool orphaned_ = false;
  boost::asio::thread_pool threads_;  // last: its threads use all of the above
};

}  // namespace detail

/// pread and pwrite on a fixed number of threads, through the FileSystem seam. No allocation once as many transfers
/// have been in flight as ever will be.
/// Threads  safe: transfers may start and end on any thread.
template <FileSystem FS = posix_file_system>
class thread_engine {
 public:
  using file_system_type = FS;
  using options_type = thread_engine_options;

  // Templates, since clang 14 instantiates a constrained constructor with the class. A FileSystem may lack a default.
  template <std::default_initializable F = FS>
  thread_engine() : thread_engine(thread_engine_options{}, F{}) {}
  template <std::default_initializable F = FS>
  explicit thread_engine(thread_engine_options options) : thread_engine(std::move(options), F{}) {}
  /// Errors  invalid_option; what the system says when it has no more threads.
  thread_engine(thread_engine_options options, FS fs) : reason_(options.reason) {
    if (options.threads == 0) {
      throw error{errc::invalid_option, {.where = "thread_engine", .detail = "threads is 0"}};
    }
    if (options.request.count == 0 || options.request.count % 4096 != 0) {
      throw error{errc::invalid_option, {.where = "thread_engine", .detail = "request is not a multiple of 4096"}};
    }
    try {
      core_.reset(new core(std::move(fs), options));
    } catch (boost::system::system_error const& failed) {
      throw error{failed.code(),
                  {.where = "thread_engine start", .detail = std::to_string(options.threads) + " threads"}};
    }
  }

  /// Why it cannot run here: never a reason.
  [[nodiscard]] static std::string probe() { return {}; }
  static constexpr char const* name = "thread";

  [[nodiscard]] FS& file_system() noexcept { return core_->file_system(); }
  /// Errors  by the token: short_transfer at end of file; what read said.
  [[nodiscard]] transfer read(file_reference from, bytes offset, std::span<std::byte> to) {
    return core_->start(from, offset, to.data(), to.size(), false);
  }
  /// Errors  by the token: what write said; short_transfer when it moved nothing.
  [[nodiscard]] transfer write(file_reference to, bytes offset, std::span<std::byte const> from) {
    return core_->start(to, offset, const_cast<std::byte*>(from.data()), from.size(), true);
  }
  /// Waits until nothing is in flight; each token keeps its own outcome.
  void drain() noexcept { core_->drain(); }
  [[nodiscard]] engine_report report() const { return {name, reason_}; }

 private:
  using core = detail::thread_engine_core<FS>;
  struct retire {
    void operator()(core* c) const noexcept { core::retire(c); }
  };
  std::string reason_;
  std::unique_ptr<core, retire> core_;
};
static_assert(TransferEngine<thread_engine<>>);

}  // namespace spillway::inline v0
