// SPDX-License-Identifier: Apache-2.0
/// Schedulers that a user might write, for tests.
#pragma once

#include <spillway/scheduler/prefetch_scheduler_concept.hpp>

#include <cstdint>
#include <span>
#include <utility>

namespace test {

struct reverse_scheduler {
  unsigned depth = 2;
  static void order(spillway::step_outline const&, std::span<std::uint32_t> out) noexcept {
    auto next = static_cast<std::uint32_t>(out.size());
    for (std::uint32_t& chunk : out) chunk = --next;
  }
  [[nodiscard]] unsigned read_ahead() const noexcept { return depth; }
  static void observe(spillway::step_times const&) noexcept {}
};
static_assert(spillway::PrefetchScheduler<reverse_scheduler>);

/// Another order each step, and another depth.
struct shuffling_scheduler {
  std::uint64_t seed = 1;
  unsigned depth = 0;
  void order(spillway::step_outline const& step, std::span<std::uint32_t> out) noexcept {
    std::uint64_t x = seed + step.number * 0x9e3779b97f4a7c15U;
    for (std::uint32_t i = 0; i < out.size(); ++i) {
      x = x * 6364136223846793005U + 1442695040888963407U;
      out[i] = i;
      std::swap(out[i], out[(x >> 33U) % (i + 1U)]);
    }
    depth = static_cast<unsigned>(x >> 60U);
  }
  [[nodiscard]] unsigned read_ahead() const noexcept { return depth; }
  static void observe(spillway::step_times const&) noexcept {}
};
static_assert(spillway::PrefetchScheduler<shuffling_scheduler>);

/// Both halves by turns: where they lie on two drives, both are busy.
struct interleaved_scheduler {
  spillway::step_times last{};
  static void order(spillway::step_outline const&, std::span<std::uint32_t> out) noexcept {
    auto const half = static_cast<std::uint32_t>((out.size() + 1) / 2);
    for (std::uint32_t i = 0; i < out.size(); ++i) out[i] = i % 2 == 0 ? i / 2 : half + i / 2;
  }
  static unsigned read_ahead() noexcept { return 1; }
  void observe(spillway::step_times const& times) noexcept { last = times; }
};
static_assert(spillway::PrefetchScheduler<interleaved_scheduler>);

}  // namespace test
