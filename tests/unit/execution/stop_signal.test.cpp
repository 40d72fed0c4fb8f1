// SPDX-License-Identifier: Apache-2.0
#include <spillway/execution/stop_signal.hpp>

#include <chrono>
#include <csignal>
#include <thread>

#include "support/catch.hpp"
#include "support/child.hpp"
#include "support/sanitizers.hpp"

namespace {
int wait_for(spillway::stop_signal& stop) {
  for (int i = 0; i < 1000 && stop.received() == 0; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  return stop.received();
}
}  // namespace

TEST_CASE("stop_signal: notes SIGTERM and SIGINT, does not end the process, and says which it was") {
  for (int const number : {SIGTERM, SIGINT}) {
    spillway::stop_signal stop;
    CHECK(stop.received() == 0);
    std::raise(number);
    CHECK(wait_for(stop) == number);
    CHECK(stop.received() == number);  // and keeps it
    std::raise(number);                // a second one is no surprise
    CHECK(wait_for(stop) == number);
  }
}

TEST_CASE("stop_signal: once it is gone the signal does what it did before") {
  if constexpr (test::thread_sanitizer) SKIP("forks beside threads");
  CHECK(test::in_child([] {
          { spillway::stop_signal const stop; }
          std::raise(SIGTERM);
          return 0;
        }) == 1000 + SIGTERM);
}
