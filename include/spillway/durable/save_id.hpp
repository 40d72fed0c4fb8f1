// SPDX-License-Identifier: Apache-2.0
/// The number that binds the files of one save together.
#pragma once

#include <spillway/core/digest.hpp>
#include <spillway/core/error.hpp>

#include <sys/random.h>

#include <cerrno>
#include <cstddef>

namespace spillway::inline v0 {

/// 128 random bits from the kernel: names made from it can't be guessed, and files of two saves can't be confused.
/// Errors   what getrandom says.
/// Threads  safe.
[[nodiscard]] inline hash128 make_save_id() {
  hash128 id{};
  auto* const to = reinterpret_cast<unsigned char*>(&id);
  std::size_t got = 0;
  while (got < sizeof id) {
    auto const count = ::getrandom(to + got, sizeof id - got, 0);
    if (count > 0) {
      got += static_cast<std::size_t>(count);
    } else if (errno != EINTR) {
      throw error{last_system_error(), {.where = "getrandom"}};
    }
  }
  return id;
}

}  // namespace spillway::inline v0
