// SPDX-License-Identifier: Apache-2.0
/// A team of real threads for tests: started and joined by every run, tasks taken in whatever order they come.
#pragma once

#include <atomic>
#include <cstddef>
#include <thread>
#include <vector>

class thread_team {
 public:
  explicit thread_team(unsigned threads) : threads_(threads) {}

  template <class Body>
  void run(std::size_t tasks, Body const& body) const {
    std::atomic<std::size_t> next{0};
    auto const work = [&] {
      for (std::size_t task = next++; task < tasks; task = next++) body(task);
    };
    std::vector<std::thread> helpers;
    for (unsigned i = 1; i < threads_; ++i) helpers.emplace_back(work);
    work();
    for (std::thread& helper : helpers) helper.join();
  }

 private:
  unsigned threads_;
};
