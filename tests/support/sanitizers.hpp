// SPDX-License-Identifier: Apache-2.0
/// Which sanitizer this is compiled with: what a test can't do under one, it skips.
#pragma once

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define TEST_ADDRESS_SANITIZER 1
#elif __has_feature(thread_sanitizer)
#define TEST_THREAD_SANITIZER 1
#endif
#elif defined(__SANITIZE_ADDRESS__)
#define TEST_ADDRESS_SANITIZER 1
#elif defined(__SANITIZE_THREAD__)
#define TEST_THREAD_SANITIZER 1
#endif

namespace test {
#if defined(TEST_ADDRESS_SANITIZER)
inline constexpr bool address_sanitizer = true;
#else
inline constexpr bool address_sanitizer = false;
#endif
#if defined(TEST_THREAD_SANITIZER)
inline constexpr bool thread_sanitizer = true;
#else
inline constexpr bool thread_sanitizer = false;
#endif
}  // namespace test
