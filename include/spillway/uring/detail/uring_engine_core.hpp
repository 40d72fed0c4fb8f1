// SPDX-License-Identifier: Apache-2.0
/// The part of uring_engine that its tokens share: operations, their pieces, and who reaps.
#pragma once

#include <spillway/core/bytes.hpp>
#include <spillway/core/error.hpp>
#include <spillway/core/transfer.hpp>
#include <spillway/io/detail/file_operation.hpp>
#include <spillway/io/posix_file_system.hpp>
#include <spillway/io/transfer_engine_concept.hpp>
#include <spillway/uring/detail/ring.hpp>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <system_error>
#include <thread>

namespace spillway::inline v0::detail {

/// Lives until the engine and its last token are gone; the ring and all I/O end with the engine.
///
/// Completions are reaped by whoever asks. A thread that must sleep does it in the kernel, without the mutex, and is
/// then the only one that reaps (`reaping_`): a completion taken by another would leave it asleep. The others sleep on
/// `progress_`.
class uring_engine_core {
 public:
  uring_engine_core(unsigned depth, bytes request) : ring_(std::in_place, depth), queues_(request) {}
  uring_engine_core(uring_engine_core const&) = delete;
  uring_engine_core& operator=(uring_engine_core const&) = delete;

  [[nodiscard]] posix_file_system& file_system() noexcept { return fs_; }

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
    feed();
    return transfer{op};
  }
  void drain() noexcept {
    std::unique_lock lock(mutex_);
    while (in_flight_ != 0) sleep(lock);
  }
  /// The engine dies: all I/O ends, the ring goes, and with the last token the core does.
  static void retire(uring_engine_core* core) noexcept {
    core->drain();
    std::unique_lock lock(core->mutex_);
    core->ring_.reset();
    core->orphaned_ = true;
    bool const last = core->pool_.taken() == 0;
    lock.unlock();
    if (last) delete core;
  }

 private:
  static bool drive(transfer::operation& base, bool block) noexcept {
    auto& op = static_cast<file_operation&>(base);
    if (op.finished.load(std::memory_order_acquire) == 0) {
      auto& core = *static_cast<uring_engine_core*>(op.engine);
      std::unique_lock lock(core.mutex_);
      if (!core.reaping_) core.advance();
      while (op.finished.load(std::memory_order_relaxed) == 0) {
        if (!block) return false;
        core.sleep(lock);
      }
    }
    deliver(op);
    return true;
  }
  static void release(transfer::operation& base) noexcept {
    auto& op = static_cast<file_operation&>(base);
    auto* const core = static_cast<uring_engine_core*>(op.engine);
    std::unique_lock lock(core->mutex_);
    core->pool_.give(op);
    bool const last = core->orphaned_ && core->pool_.taken() == 0;
    lock.unlock();
    if (last) delete core;
  }

  /// Something is in flight; returns after some progress was made, by this thread or another.
  void sleep(std::unique_lock<std::mutex>& lock) noexcept {
    if (reaping_) {
      progress_.wait(lock);
      return;
    }
    reaping_ = true;
    bool const pending = ring_->in_kernel() != 0;
    lock.unlock();
    int const failed = pending ? ring_->wait() : EAGAIN;
    // Nothing to wait for when the kernel has had no memory for any request so far: ask again in a while. Other
    // failures of the wait leave the completions where they can be seen without it.
    if (failed != 0 && failed != EINTR) std::this_thread::sleep_for(std::chrono::microseconds{200});
    lock.lock();
    reaping_ = false;
    advance();
    progress_.notify_all();
  }
  void advance() noexcept {
    ring_->reap([this](ring::slot& slot, int result) { settle(slot, result); });
    feed();
  }
  /// As many pieces as the queue takes go to the kernel now.
  void feed() noexcept {
    if (broken_ == 0) {
      while (ring_->has_slot()) {
        file_piece const piece = queues_.take();
        if (piece.of == nullptr) break;
        ring::slot& slot = ring_->take();
        slot.piece = piece;
        ring_->prepare(slot);
      }
      int const failed = ring_->submit();
      if (failed == 0 || failed == EAGAIN || failed == EBUSY) return;
      broken_ = failed;
      ring_->forsake([this](ring::slot& slot) { fail(slot, {broken_, std::system_category()}); });
    }
    // A ring that refuses everything: what waits fails, what the kernel has is still waited for.
    for (file_piece piece = queues_.take(); piece.of != nullptr; piece = queues_.take()) {
      record_failure(piece, {broken_, std::system_category()});
      queues_.abandon(*piece.of);
      leave(*piece.of);
    }
    progress_.notify_all();
  }

  void settle(ring::slot& slot, int result) noexcept {
    file_piece& piece = slot.piece;
    if (result > 0) {
      piece.moved += static_cast<std::uint64_t>(result);
      piece.again = 0;
      if (piece.left() != 0) return repeat(slot);
      file_operation& op = *piece.of;
      ring_->give(slot);
      return leave(op);
    }
    // ECANCELED: the thread that started the transfer ended while a kernel worker still had it queued.
    bool const passing = result == -EINTR || result == -EAGAIN || result == -ECANCELED;
    if (passing && piece.again++ < again_limit) return repeat(slot);
    std::error_code code{-result, std::system_category()};
    if (result == 0 || (result == -EINVAL && past_end(piece, fs_))) code = errc::short_transfer;
    fail(slot, code);
  }
  void repeat(ring::slot& slot) noexcept {
    if (broken_ != 0) return fail(slot, {broken_, std::system_category()});
    ring_->prepare(slot);  // feed() follows and submits it
  }
  void fail(ring::slot& slot, std::error_code code) noexcept {
    file_operation& op = *slot.piece.of;
    record_failure(slot.piece, code);
    queues_.abandon(op);
    ring_->give(slot);
    leave(op);
  }
  /// One piece of `op` is over.
  void leave(file_operation& op) noexcept {
    if (--op.running != 0 || op.handed_out != op.size) return;
    op.outcome = describe(op, "uring_engine");
    op.finished.store(1, std::memory_order_release);
    --in_flight_;
  }

  posix_file_system fs_;
  std::mutex mutex_;
  std::condition_variable progress_;
  std::optional<ring> ring_;
  direction_queues queues_;
  operation_pool pool_;
  std::size_t in_flight_ = 0;
  int broken_ = 0;  // errno of a submission that can never succeed
  bool reaping_ = false;
  bool orphaned_ = false;
};

}  // namespace spillway::inline v0::detail
