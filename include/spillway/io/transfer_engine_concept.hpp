// SPDX-License-Identifier: Apache-2.0
/// The policy seam "how bytes move between memory and a file". Requirements table: io/README.md.
#pragma once

#include <spillway/core/bytes.hpp>
#include <spillway/core/transfer_concept.hpp>
#include <spillway/io/file_system_concept.hpp>

#include <concepts>
#include <cstddef>
#include <span>
#include <string>

namespace spillway::inline v0 {

/// A file as an engine sees it. The path is for messages and outlives the transfers.
struct file_reference {
  open_handle handle{};
  char const* path = "";
};

/// What an engine is and why it was chosen, for reports: a choice is never silent.
struct engine_report {
  std::string name{};    ///< "uring", "thread"
  std::string reason{};  ///< "probed: io_uring works", "io_uring_setup: Operation not permitted"
};

/// Moves bytes between memory and a file, many at once.
/// Semantics the compiler can't check: a transfer ends when all its bytes are moved or the first error is known; short counts are
/// continued, EINTR and EAGAIN retried, requests over 1 GiB split; a failure carries path, offset, wanted, got and errno;
/// destroying an engine drains it first: after that no memory is touched. Transfers of one engine may start and end on any thread.
template <class E>
concept TransferEngine = std::movable<E> && requires(E& engine, E const& view, file_reference f, bytes offset,
                                                     std::span<std::byte> to, std::span<std::byte const> from) {
  requires FileSystem<typename E::file_system_type>;
  { engine.file_system() } -> std::same_as<typename E::file_system_type&>;
  { engine.read(f, offset, to) } -> Transfer;
  { engine.write(f, offset, from) } -> Transfer;
  engine.drain();  // returns when nothing is in flight
  { view.report() } -> std::same_as<engine_report>;
  requires noexcept(engine.drain());
};

}  // namespace spillway::inline v0
