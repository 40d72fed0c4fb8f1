// SPDX-License-Identifier: Apache-2.0
/// The erased Transfer that engines hand out, and the operation record behind it.
#pragma once

#include <spillway/core/transfer_concept.hpp>

#include <exception>
#include <system_error>
#include <utility>

namespace spillway::inline v0 {

/// Owns one operation of an engine. Movable, one word; no allocation of its own.
/// Threads: one thread at a time a token; tokens of one engine may be used from different threads.
class transfer {
 public:
  /// What an engine keeps for one operation, in storage of its own that outlives every token.
  struct operation {
    bool (*drive)(operation&, bool block) noexcept = nullptr;  ///< true when done; with `block` returns only then
    void (*release)(operation&) noexcept = nullptr;            ///< gives the storage back; the operation is done
    std::exception_ptr failure{};                              ///< set before done, read after
    std::error_code code{};
  };

  transfer() noexcept = default;
  explicit transfer(operation& op) noexcept : op_(&op) {}
  transfer(transfer&& other) noexcept : op_(std::exchange(other.op_, nullptr)), code_(other.code_) {}
  transfer& operator=(transfer&& other) noexcept {
    if (this != &other) {
      finish();
      op_ = std::exchange(other.op_, nullptr);
      code_ = other.code_;
    }
    return *this;
  }
  ~transfer() { finish(); }

  [[nodiscard]] bool poll() noexcept { return op_ == nullptr || op_->drive(*op_, false); }
  /// Errors  the spillway::error of the failed operation, once; the token is done afterwards.
  void wait() {
    if (op_ == nullptr) return;
    op_->drive(*op_, true);
    std::exception_ptr const failure = op_->failure;
    finish();
    if (failure) std::rethrow_exception(failure);
  }
  [[nodiscard]] std::error_code status() const noexcept { return op_ == nullptr ? code_ : op_->code; }

 private:
  void finish() noexcept {
    if (op_ == nullptr) return;
    op_->drive(*op_, true);
    code_ = op_->code;
    op_->release(*std::exchange(op_, nullptr));
  }
  operation* op_ = nullptr;
  std::error_code code_{};
};
static_assert(Transfer<transfer>);

}  // namespace spillway::inline v0
