// SPDX-License-Identifier: Apache-2.0
/// The kernel queue: owns the ring and its slots, submits and reaps. No policy, no locking.
#pragma once

#include <spillway/core/error.hpp>
#include <spillway/io/detail/file_operation.hpp>

#include <liburing.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

namespace spillway::inline v0::detail {

/// A ring with one slot for each request that may be in the kernel. As many as the submission queue has entries, and
/// the completion queue has twice as many, so neither overflows.
class ring {
 public:
  struct slot {
    file_piece piece{};
    std::uint64_t sequence = 0;  // of its last preparation: submitted when <= submitted_
    slot* next_free = nullptr;
  };

  /// Errors  what io_uring_setup said.
  explicit ring(unsigned depth) {
    io_uring_params params{};
    params.flags = IORING_SETUP_CLAMP;  // a depth over the kernel's limit becomes the limit
    int const failed = ::io_uring_queue_init_params(depth, &ring_, &params);
    if (failed < 0) throw error{{-failed, std::system_category()}, {.where = "uring_engine io_uring_setup"}};
    slots_ = std::vector<slot>(std::min(depth, params.sq_entries));
    for (slot& s : slots_) s.next_free = std::exchange(free_, &s);
  }
  ring(ring const&) = delete;
  ring& operator=(ring const&) = delete;
  ~ring() { ::io_uring_queue_exit(&ring_); }

  /// Empty when io_uring works here.
  [[nodiscard]] static std::string probe() {
    io_uring probed{};
    int const failed = ::io_uring_queue_init(2, &probed, 0);
    if (failed < 0) return std::string("io_uring_setup: ") + std::strerror(-failed);
    io_uring_probe* const known = ::io_uring_get_probe_ring(&probed);
    bool const works = known != nullptr && ::io_uring_opcode_supported(known, IORING_OP_READ) != 0 &&
                       ::io_uring_opcode_supported(known, IORING_OP_WRITE) != 0;
    ::io_uring_free_probe(known);
    ::io_uring_queue_exit(&probed);
    return works ? std::string{} : std::string("io_uring without read and write: the kernel is older than 5.6");
  }

  [[nodiscard]] bool has_slot() const noexcept { return free_ != nullptr; }
  [[nodiscard]] slot& take() noexcept {
    slot& s = *free_;
    free_ = s.next_free;
    return s;
  }
  void give(slot& s) noexcept {
    s.piece = {};
    s.next_free = std::exchange(free_, &s);
  }

  /// Queues the rest of the slot's piece. There is room: the queue has an entry for every slot.
  void prepare(slot& s) noexcept {
    io_uring_sqe* const sqe = ::io_uring_get_sqe(&ring_);
    file_piece const& piece = s.piece;
    auto const length = static_cast<unsigned>(piece.left());
    if (piece.of->writes) {
      ::io_uring_prep_write(sqe, piece.of->file.handle.id, piece.where(), length, piece.position());
    } else {
      ::io_uring_prep_read(sqe, piece.of->file.handle.id, piece.where(), length, piece.position());
    }
    ::io_uring_sqe_set_data(sqe, &s);
    s.sequence = ++prepared_;
  }
  /// Hands what is prepared to the kernel, which may take only a part. 0, or the errno for which it takes nothing at
  /// all; EAGAIN and EBUSY mean: later.
  [[nodiscard]] int submit() noexcept {
    while (prepared_ != submitted_) {
      int const taken = ::io_uring_submit(&ring_);
      if (taken == -EINTR) continue;
      if (taken < 0) return -taken;
      if (taken == 0) return EAGAIN;
      submitted_ += static_cast<std::uint64_t>(taken);
    }
    return 0;
  }
  /// Calls `done(slot, result)` for every completion that has arrived.
  template <class Done>
  void reap(Done&& done) {
    io_uring_cqe* cqe = nullptr;
    while (::io_uring_peek_cqe(&ring_, &cqe) == 0 && cqe != nullptr) {
      auto& s = *static_cast<slot*>(::io_uring_cqe_get_data(cqe));
      int const result = cqe->res;
      ::io_uring_cqe_seen(&ring_, cqe);
      ++reaped_;
      done(s, result);
    }
  }
  /// Requests that the kernel holds.
  [[nodiscard]] std::uint64_t in_kernel() const noexcept { return submitted_ - reaped_; }
  /// Calls `lost(slot)` for every prepared request that the kernel never took. Only before the ring is given up: what
  /// is prepared stays in the queue, so submit() must not be called again.
  template <class Lost>
  void forsake(Lost&& lost) {
    for (slot& s : slots_) {
      if (s.piece.of != nullptr && s.sequence > submitted_) lost(s);
    }
  }

  /// Sleeps until a completion is there to reap; touches no shared memory, so it needs no lock. 0 or errno.
  [[nodiscard]] int wait() const noexcept {
    int const outcome = ::io_uring_enter(static_cast<unsigned>(ring_.ring_fd), 0, 1, IORING_ENTER_GETEVENTS, nullptr);
    return outcome < 0 ? -outcome : 0;
  }

 private:
  io_uring ring_{};
  std::vector<slot> slots_;
  slot* free_ = nullptr;
  std::uint64_t prepared_ = 0;
  std::uint64_t submitted_ = 0;
  std::uint64_t reaped_ = 0;
};

}  // namespace spillway::inline v0::detail
