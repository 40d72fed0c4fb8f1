// SPDX-License-Identifier: Apache-2.0
// expect: this member of a training state is neither saved nor declared transient
#include <spillway/state/state_walk.hpp>

#include <memory>

struct run_state {
  int step = 0;
  std::shared_ptr<int> forgotten{};
};
struct ignore_leaves {
  template <spillway::StateLeaf L>
  void operator()(std::string, L&) const {}
};

int main() {
  run_state state;
  ignore_leaves handler;
  spillway::walk_state(state, handler);
}
