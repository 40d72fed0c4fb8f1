// SPDX-License-Identifier: Apache-2.0
/// Runs two contenders in turns and prints what benchmarks/run.sh reads: see benchmarks/README.md.
#pragma once

#include <chrono>
#include <cstdio>
#include <string>

namespace bench {

struct contest {
  std::string baseline;  ///< one word: what we are compared with
  double goal = 1;       ///< our speed over the baseline's that we want
  unsigned rounds = 5;
};

/// The wall-clock seconds of one call.
template <class Work>
[[nodiscard]] double seconds_of(Work&& work) {
  auto const start = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

/// `ours` and `baseline` each do the same work once and return the seconds it took, set-up and clean-up left out. Who goes
/// first changes every round, so that neither always finds the caches, or the drive, as the other left them.
template <class Ours, class Baseline>
void alternate(contest const& about, Ours&& ours, Baseline&& baseline) {
  std::printf("baseline %s\ngoal %g\n", about.baseline.c_str(), about.goal);
  for (unsigned round = 0; round < about.rounds; ++round) {
    double our_seconds = 0;
    double baseline_seconds = 0;
    if (round % 2 == 0) {
      our_seconds = ours();
      baseline_seconds = baseline();
    } else {
      baseline_seconds = baseline();
      our_seconds = ours();
    }
    std::printf("round %.9g %.9g\n", our_seconds, baseline_seconds);
    std::fflush(stdout);
  }
}

/// A figure beside the ratio: bytes moved, bandwidth, the machine's.
inline void value(char const* key, double number, char const* unit) {
  std::printf("value %s %.9g %s\n", key, number, unit);
}

}  // namespace bench
