// SPDX-License-Identifier: Apache-2.0
/// Version, the few macros of the library, and the contract check.
#pragma once

#include <cstdio>
#include <cstdlib>

#define SPILLWAY_VERSION_MAJOR 0
#define SPILLWAY_VERSION_MINOR 1
#define SPILLWAY_VERSION_PATCH 0

// On constexpr arithmetic that kernels share with the host, and nowhere else.
#if defined(__CUDACC__)
#define SPILLWAY_HOST_DEVICE __host__ __device__
#else
#define SPILLWAY_HOST_DEVICE
#endif

#define SPILLWAY_ALWAYS_INLINE inline __attribute__((always_inline))

namespace spillway::inline v0::detail {

[[noreturn]] inline void contract_violated(char const* condition, char const* file, int line) noexcept {
  std::fprintf(stderr, "%s:%d: spillway contract violated: %s\n", file, line, condition);
  std::abort();
}

}  // namespace spillway::inline v0::detail

/// A bug of the caller: prints file, line and condition, then aborts, in release builds too. Never used on what was read or
/// configured: that throws spillway::error.
#define SPILLWAY_EXPECTS(condition) \
  ((condition) ? static_cast<void>(0) : ::spillway::detail::contract_violated(#condition, __FILE__, __LINE__))
