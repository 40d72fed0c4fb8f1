// SPDX-License-Identifier: Apache-2.0
/// How the model uses threads: a team runs numbered tasks, and the split into tasks never depends on how many threads there are.
#pragma once

#include <algorithm>
#include <cstddef>

namespace train_gpt {

/// The simplest team: the caller's own thread. A team is any type with such a `run`: it calls body(task) once for every task
/// in [0, tasks), at the same time where it can, and returns when all are done.
struct serial_team {
  template <class Body>
  void run(std::size_t tasks, Body const& body) const {
    for (std::size_t task = 0; task < tasks; ++task) body(task);
  }
};

/// Calls body(begin, end) for pieces of [0, count) of `grain` elements; the last one may be shorter.
/// Pre      grain > 0; the pieces may run at the same time.
/// Errors   what the team and body throw.
/// Threads  called by one thread; body by those of the team.
template <class Team, class Body>
void for_pieces(Team& team, std::size_t count, std::size_t grain, Body const& body) {
  team.run((count + grain - 1) / grain,
           [&](std::size_t piece) { body(piece * grain, std::min(count, (piece + 1) * grain)); });
}

}  // namespace train_gpt
