// SPDX-License-Identifier: Apache-2.0
/// What the engines share: the record of one read or write, how it is cut into pieces, and who owns the records.
#pragma once

#include <spillway/core/bytes.hpp>
#include <spillway/core/error.hpp>
#include <spillway/core/transfer.hpp>
#include <spillway/io/transfer_engine_concept.hpp>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

namespace spillway::inline v0::detail {

/// One call moves at most this much, whatever the options say: Linux cuts a call at 2 GiB - 4 KiB.
inline constexpr std::uint64_t largest_request = std::uint64_t{1} << 30U;
/// EAGAIN without progress this often in a row is an error: a resource that never comes back must not hang a run.
inline constexpr unsigned again_limit = 1000;

/// One read or write, cut into pieces that are handed out in order of their offset. All members are guarded by the
/// engine's mutex, except `finished`, and the base, which only the thread that owns the token touches.
struct file_operation : transfer::operation {
  file_reference file{};
  std::byte* data = nullptr;  // of a write too: only ever read then
  std::uint64_t offset = 0;
  std::uint64_t size = 0;
  bool writes = false;
  std::uint64_t handed_out = 0;                 // bytes of [0, size) that pieces were made for
  unsigned running = 0;                         // pieces handed out and not settled
  std::uint64_t failed_at = ~std::uint64_t{0};  // lowest position that did not move; pieces below it did
  std::error_code failed_code{};
  std::exception_ptr outcome{};  // complete before `finished`
  std::atomic<int> finished{0};
  void* engine = nullptr;
  file_operation* next = nullptr;
};

/// Part of an operation, small enough for one call. `moved` grows when a call moves less than asked.
struct file_piece {
  file_operation* of = nullptr;
  std::uint64_t begin = 0;
  std::uint64_t size = 0;
  std::uint64_t moved = 0;
  unsigned again = 0;

  [[nodiscard]] std::uint64_t position() const noexcept { return of->offset + begin + moved; }
  [[nodiscard]] std::byte* where() const noexcept { return of->data + begin + moved; }
  [[nodiscard]] std::uint64_t left() const noexcept { return size - moved; }
};

/// First in, first out.
class operation_fifo {
 public:
  [[nodiscard]] bool empty() const noexcept { return head_ == nullptr; }
  [[nodiscard]] file_operation* front() const noexcept { return head_; }
  void push(file_operation& op) noexcept {
    op.next = nullptr;
    (head_ == nullptr ? head_ : tail_->next) = &op;
    tail_ = &op;
  }
  void pop() noexcept { head_ = head_->next; }

 private:
  file_operation* head_ = nullptr;
  file_operation* tail_ = nullptr;
};

/// Reads and writes wait apart and are fed alternately: a write behind a long read would leave one direction idle.
class direction_queues {
 public:
  explicit direction_queues(bytes request) noexcept : request_(std::min(request.count, largest_request)) {}
  [[nodiscard]] std::uint64_t request() const noexcept { return request_; }
  [[nodiscard]] bool empty() const noexcept { return fifo_[0].empty() && fifo_[1].empty(); }
  void push(file_operation& op) noexcept { fifo_[op.writes ? 1 : 0].push(op); }
  /// The next piece, or one with no operation when nothing waits.
  [[nodiscard]] file_piece take() noexcept {
    if (empty()) return {};
    turn_ = fifo_[turn_ ^ 1U].empty() ? turn_ : turn_ ^ 1U;
    file_operation& op = *fifo_[turn_].front();
    file_piece const piece{&op, op.handed_out, std::min(request_, op.size - op.handed_out), 0, 0};
    op.handed_out += piece.size;
    ++op.running;
    if (op.handed_out == op.size) fifo_[turn_].pop();
    return piece;
  }
  /// Hands out nothing more of an operation, one of whose pieces failed. It is at the front: no other is handed out.
  void abandon(file_operation& op) noexcept {
    if (op.handed_out == op.size) return;
    op.handed_out = op.size;
    fifo_[op.writes ? 1 : 0].pop();
  }

 private:
  std::uint64_t request_;
  operation_fifo fifo_[2];
  unsigned turn_ = 0;
};

/// The piece's last call failed. The lowest position wins: all before it was handed out earlier, so the count of bytes
/// moved before the failure is exact.
inline void record_failure(file_piece const& piece, std::error_code code) noexcept {
  std::uint64_t const at = piece.begin + piece.moved;
  if (at >= piece.of->failed_at) return;
  piece.of->failed_at = at;
  piece.of->failed_code = code;
}

/// Whether EINVAL for the rest of a piece means the end of the file: a direct read that ends inside a block goes on at an
/// unaligned offset, and not every file system looks at the size before it looks at the alignment.
template <FileSystem FS>
bool past_end(file_piece const& piece, FS& fs) {
  if (piece.of->writes || piece.moved == 0) return false;
  call_result const size = fs.size(piece.of->file.handle);
  return size.ok() && piece.position() >= static_cast<std::uint64_t>(size.value);
}

/// The failure as the user sees it, or null. Never throws: without memory for the text it is bad_alloc.
inline std::exception_ptr describe(file_operation const& op, char const* engine) noexcept {
  if (op.failed_at == ~std::uint64_t{0}) return op.outcome;
  try {
    return std::make_exception_ptr(error{op.failed_code,
                                         {.where = std::string(engine) + (op.writes ? " write" : " read"),
                                          .path = op.file.path,
                                          .offset = op.offset,
                                          .wanted = bytes{op.size},
                                          .got = bytes{op.failed_at},
                                          .detail = {}}});
  } catch (...) {
    return std::current_exception();
  }
}

/// Moves the outcome into the part that the token's thread may read. Called by that thread only.
inline void deliver(file_operation& op) noexcept {
  if (!op.outcome) return;
  op.failure = std::exchange(op.outcome, nullptr);
  try {
    std::rethrow_exception(op.failure);
  } catch (std::system_error const& failed) {
    op.code = failed.code();
  } catch (...) {
    op.code = std::make_error_code(std::errc::not_enough_memory);
  }
}

/// Owns the records. A record is handed out again and again; new ones are made only when more operations are in flight
/// than ever before, 64 at a time. Guarded by the engine's mutex.
class operation_pool {
 public:
  [[nodiscard]] file_operation& take() {
    if (free_ == nullptr) grow();
    file_operation& op = *std::exchange(free_, free_->next);
    ++taken_;
    return op;
  }
  void give(file_operation& op) noexcept {
    op.failure = nullptr;
    op.outcome = nullptr;
    op.code = op.failed_code = {};
    op.failed_at = ~std::uint64_t{0};
    op.handed_out = 0;
    op.finished.store(0, std::memory_order_relaxed);
    op.next = std::exchange(free_, &op);
    --taken_;
  }
  [[nodiscard]] std::size_t taken() const noexcept { return taken_; }

 private:
  static constexpr std::size_t batch = 64;
  void grow() {
    batches_.push_back(std::make_unique<file_operation[]>(batch));
    for (std::size_t i = 0; i < batch; ++i) batches_.back()[i].next = std::exchange(free_, &batches_.back()[i]);
  }
  std::vector<std::unique_ptr<file_operation[]>> batches_;
  file_operation* free_ = nullptr;
  std::size_t taken_ = 0;
};

}  // namespace spillway::inline v0::detail
