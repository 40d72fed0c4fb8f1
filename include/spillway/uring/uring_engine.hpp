// SPDX-License-Identifier: Apache-2.0
/// The TransferEngine on io_uring: one thread keeps a drive busy in both directions.
#pragma once

#include <spillway/core/bytes.hpp>
#include <spillway/core/error.hpp>
#include <spillway/core/transfer.hpp>
#include <spillway/io/posix_file_system.hpp>
#include <spillway/io/transfer_engine_concept.hpp>
#include <spillway/uring/detail/ring.hpp>
#include <spillway/uring/detail/uring_engine_core.hpp>

#include <memory>
#include <span>
#include <string>

namespace spillway::inline v0 {

struct uring_engine_options {
  unsigned depth = 64;         ///< requests in the kernel at most; the kernel may clamp it
  bytes request{4ULL << 20U};  ///< largest request; a multiple of 4096
};

/// Submits when a transfer starts, so the kernel works while the caller computes; pieces over the depth wait in two
/// queues, reads and writes, that are fed alternately whenever someone polls or waits. Whether I/O is direct is the
/// file's matter. No allocation once as many transfers have been in flight as ever will be.
/// Threads  safe: transfers may start and end on any thread, and a thread may end before its transfers.
class uring_engine {
 public:
  using file_system_type = posix_file_system;
  using options_type = uring_engine_options;

  uring_engine() : uring_engine(uring_engine_options{}) {}
  /// Errors  invalid_option; what io_uring_setup said.
  explicit uring_engine(uring_engine_options options) {
    if (options.depth == 0) throw error{errc::invalid_option, {.where = "uring_engine", .detail = "depth is 0"}};
    if (options.request.count == 0 || options.request.count % 4096 != 0) {
      throw error{errc::invalid_option, {.where = "uring_engine", .detail = "request is not a multiple of 4096"}};
    }
    core_.reset(new detail::uring_engine_core(options.depth, options.request));
  }

  /// Empty when io_uring works here, else why not: "io_uring_setup: Operation not permitted".
  [[nodiscard]] static std::string probe() { return detail::ring::probe(); }
  static constexpr char const* name = "uring";

  [[nodiscard]] posix_file_system& file_system() noexcept { return core_->file_system(); }
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
  [[nodiscard]] static engine_report report() { return {name, "chosen by type"}; }

 private:
  struct retire {
    void operator()(detail::uring_engine_core* core) const noexcept { detail::uring_engine_core::retire(core); }
  };
  std::unique_ptr<detail::uring_engine_core, retire> core_;
};
static_assert(TransferEngine<uring_engine>);

}  // namespace spillway::inline v0
