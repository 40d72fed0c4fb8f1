// SPDX-License-Identifier: Apache-2.0
/// Counts what a piece of code allocates: the program's operator new is replaced. Weak, so that many tests may include this.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <new>

#include "support/sanitizers.hpp"

namespace test {
inline constinit std::atomic<std::uint64_t> allocations_made{0};
/// By all threads, since the program began.
[[nodiscard]] inline std::uint64_t allocations() noexcept { return allocations_made.load(); }
/// False under a sanitizer, which needs its own operator new: a test that counts skips then.
inline constexpr bool allocations_are_counted = !address_sanitizer && !thread_sanitizer;
}  // namespace test

#if !defined(TEST_ADDRESS_SANITIZER) && !defined(TEST_THREAD_SANITIZER)
// The other forms of new and delete end in these.
[[gnu::weak]] void* operator new(std::size_t n) {
  test::allocations_made.fetch_add(1);
  if (void* const p = std::malloc(n == 0 ? 1 : n)) return p;
  throw std::bad_alloc();
}
[[gnu::weak]] void operator delete(void* p) noexcept { std::free(p); }
[[gnu::weak]] void operator delete(void* p, std::size_t) noexcept { std::free(p); }
#endif
