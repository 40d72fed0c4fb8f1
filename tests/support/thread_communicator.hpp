// SPDX-License-Identifier: Apache-2.0
/// Ranks that are threads of one process, for tests.
#pragma once

#include <spillway/comm/communicator_concept.hpp>

#include <algorithm>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <mutex>
#include <span>
#include <thread>
#include <vector>

namespace test {

class thread_communicator {
 public:
  /// One communicator a rank.
  [[nodiscard]] static std::vector<thread_communicator> make(unsigned world) {
    auto const group = std::make_shared<shared>();
    group->world = world;
    std::vector<thread_communicator> out;
    for (unsigned rank = 0; rank < world; ++rank) out.push_back(thread_communicator{group, rank});
    return out;
  }
  [[nodiscard]] unsigned rank() const noexcept { return rank_; }
  [[nodiscard]] unsigned world() const noexcept { return group_->world; }
  void all_reduce_sum(std::span<std::int64_t> numbers) {
    {
      std::lock_guard const lock(group_->mutex);
      group_->sums.resize(std::max(group_->sums.size(), numbers.size()));
      for (std::size_t i = 0; i < numbers.size(); ++i) group_->sums[i] += static_cast<std::uint64_t>(numbers[i]);
    }
    barrier();
    for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<std::int64_t>(group_->sums[i]);
    barrier();
    if (rank_ == 0) group_->sums.clear();
    barrier();
  }
  void broadcast(std::span<std::byte> data, unsigned root) {
    if (rank_ == root) group_->data = data;
    barrier();
    if (rank_ != root) std::copy(group_->data.begin(), group_->data.end(), data.begin());
    barrier();
  }
  void barrier() {
    std::unique_lock lock(group_->mutex);
    std::uint64_t const round = group_->round;
    if (++group_->waiting == group_->world) {
      group_->waiting = 0;
      ++group_->round;
      group_->next.notify_all();
    } else {
      group_->next.wait(lock, [&] { return group_->round != round; });
    }
  }

 private:
  struct shared {
    unsigned world = 1;
    std::mutex mutex;
    std::condition_variable next;
    unsigned waiting = 0;
    std::uint64_t round = 0;
    std::vector<std::uint64_t> sums;
    std::span<std::byte> data;
  };
  thread_communicator(std::shared_ptr<shared> group, unsigned rank) : group_(std::move(group)), rank_(rank) {}
  std::shared_ptr<shared> group_;
  unsigned rank_;
};
static_assert(spillway::Communicator<thread_communicator>);

/// body(communicator) on `world` threads; returns when all are done. Rethrows what a body threw.
template <class Body>
void on_ranks(unsigned world, Body const& body) {
  auto ranks = thread_communicator::make(world);
  std::vector<std::exception_ptr> failures(world);
  std::vector<std::thread> threads;
  for (auto& comm : ranks) {
    threads.emplace_back([&] {
      try {
        body(comm);
      } catch (...) {
        failures[comm.rank()] = std::current_exception();
      }
    });
  }
  for (std::thread& t : threads) t.join();
  for (auto const& failure : failures) {
    if (failure) std::rethrow_exception(failure);
  }
}

}  // namespace test
