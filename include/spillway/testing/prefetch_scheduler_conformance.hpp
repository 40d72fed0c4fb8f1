// SPDX-License-Identifier: Apache-2.0
/// What a PrefetchScheduler promises beyond what the compiler checks, as a list of broken laws. For users' own schedulers too.
#pragma once

#include <spillway/scheduler/prefetch_scheduler_concept.hpp>
#include <spillway/testing/detail/law_list.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace spillway::inline v0::testing {

namespace detail {

/// Empty when `scheduler` orders `outline.chunks` chunks as it must, else what is wrong.
template <PrefetchScheduler S>
[[nodiscard]] std::string wrong_order(S& scheduler, step_outline const& outline) {
  constexpr std::uint32_t untouched = 0xdeadbeefU;
  std::vector<std::uint32_t> memory(outline.chunks + std::size_t{2}, untouched);
  scheduler.order(outline, std::span{memory}.subspan(1, outline.chunks));
  std::string const what = std::to_string(outline.chunks) + " chunks, step " + std::to_string(outline.number) + ": ";
  if (memory.front() != untouched || memory.back() != untouched)
    return what + "something outside of the span was written";
  std::vector<bool> seen(outline.chunks, false);
  for (std::size_t i = 1; i <= outline.chunks; ++i) {
    std::uint32_t const chunk = memory[i];
    if (chunk >= outline.chunks) return what + "chunk " + std::to_string(chunk) + " does not exist";
    if (seen[chunk]) return what + "chunk " + std::to_string(chunk) + " comes twice";
    seen[chunk] = true;
  }
  return {};
}

}  // namespace detail

/// Tries the laws of PrefetchScheduler: a permutation for every number of chunks and slots, before and after being told times.
/// The broken laws, each with what was seen; empty: it passes.
/// Errors  none of the scheduler's: what it throws is a broken law.
template <PrefetchScheduler S>
[[nodiscard]] std::vector<std::string> check_prefetch_scheduler(S& scheduler) {
  detail::law_list laws;
  std::uint64_t number = 0;
  auto const orders = [&](std::uint32_t slots) {
    for (std::uint32_t const chunks : {0U, 1U, 2U, 3U, 4U, 5U, 7U, 8U, 9U, 31U, 64U, 100U, 1023U, 5000U, 1U}) {
      auto const wrong = detail::wrong_order(scheduler, {.number = ++number, .chunks = chunks, .slots = slots});
      laws.expect(wrong.empty(), wrong);
      static_cast<void>(static_cast<unsigned>(scheduler.read_ahead()));
    }
  };
  laws.law("order", [&] {
    for (std::uint32_t const slots : {2U, 3U, 8U, 64U}) orders(slots);
  });
  laws.law("order after times", [&] {
    scheduler.observe({});  // a step that took no time, as clocks see it
    orders(4);
    scheduler.observe({.wall = 1e6,
                       .file_read = 1e6,
                       .file_write = 1e-9,
                       .update = 3,
                       .waiting_for_read = 1e6,
                       .waiting_for_write = 0});
    orders(4);
    for (int i = 0; i < 100; ++i) {
      scheduler.observe({.wall = 1,
                         .file_read = 0.5,
                         .file_write = 1,
                         .update = 0.1,
                         .waiting_for_read = 0,
                         .waiting_for_write = 0.9});
    }
    orders(2);
  });
  return laws.take();
}

}  // namespace spillway::inline v0::testing
