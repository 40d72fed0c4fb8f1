// SPDX-License-Identifier: Apache-2.0
/// Catch2 3 if it is installed, else 2.13 with the few names of version 3 that our tests use: Catch::Approx and SKIP.
/// Spell matchers in full (Catch::Matchers::WithinRel): that works with both.
#pragma once

#if __has_include(<catch2/catch_all.hpp>)
#include <catch2/catch_all.hpp>
#else
#include <catch2/catch.hpp>

namespace Catch {
using Detail::Approx;
}  // namespace Catch

// Ends the test case, or its current section, as version 3 does. CTest reads "[skip]" in the output as skipped, not passed.
#define SKIP(message)                      \
  do {                                     \
    WARN("[skip] " << message);            \
    throw ::Catch::TestFailureException{}; \
  } while (false)
#endif
