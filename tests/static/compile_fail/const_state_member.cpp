// SPDX-License-Identifier: Apache-2.0
// expect: visit_state passed a const member
#include <spillway/state/state_walk.hpp>

struct run_state {
  template <class V>
  void visit_state(V& visit) const {
    visit("step", step);
  }
  int step = 0;
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
