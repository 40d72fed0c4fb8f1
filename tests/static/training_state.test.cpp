// SPDX-License-Identifier: Apache-2.0
// Compiling is the test.
#include <spillway/core/counter_rng.hpp>
#include <spillway/state/sampler_position.hpp>
#include <spillway/state/state_walk.hpp>
#include <spillway/testing/training_state_archetypes.hpp>

#include <array>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace {
using namespace spillway;
namespace archetypes = spillway::testing;

static_assert(TrainingState<archetypes::visited_state>);
static_assert(TrainingState<archetypes::hooked_state>);
static_assert(TrainingState<archetypes::aggregate_state>);
static_assert(TrainingState<counter_rng>);
static_assert(TrainingState<sampler_position>);

static_assert(!TrainingState<archetypes::state_with_nothing>);
static_assert(!TrainingState<archetypes::state_with_wrong_visit>);
static_assert(!TrainingState<archetypes::state_with_swapped_hook>);
static_assert(!TrainingState<archetypes::state_with_reference>);
static_assert(!TrainingState<archetypes::state_with_too_many>);
static_assert(!TrainingState<int>);
static_assert(!TrainingState<std::string>);
static_assert(!TrainingState<std::vector<float>>);
static_assert(!TrainingState<int*>);

enum class phase { warm_up, main };
enum plain { zero, one };
static_assert(StateLeaf<bool> && StateLeaf<char> && StateLeaf<int> && StateLeaf<long long> && StateLeaf<float>);
static_assert(StateLeaf<double> && StateLeaf<bf16> && StateLeaf<phase> && StateLeaf<plain> && StateLeaf<std::string>);
static_assert(StateLeaf<std::vector<std::byte>> && StateLeaf<std::vector<float>> && StateLeaf<std::array<bool, 3>>);
static_assert(StateLeaf<tensor_leaf<bf16>>);
static_assert(!StateLeaf<long double> && !StateLeaf<std::byte> && !StateLeaf<float*> && !StateLeaf<std::vector<bool>>);
static_assert(!StateLeaf<std::optional<int>> && !StateLeaf<std::map<int, int>> && !StateLeaf<std::unique_ptr<int>>);
static_assert(!StateLeaf<std::vector<std::string>> && !StateLeaf<tensor_leaf<float const>>);

// Members are counted through everything that has converting constructors of its own.
struct many {
  int a;
  std::string b;
  std::vector<float> c;
  std::array<float, 3> d;
  std::unique_ptr<int> e;
  std::optional<double> f;
  transient<std::map<int, int>> g;
  archetypes::aggregate_state h;
};
static_assert(detail::count_members<many>() == 8);
struct none {};
static_assert(detail::count_members<none>() == 0);
struct sixteen {
  int a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p;
};
static_assert(detail::count_members<sixteen>() == 16);

struct ignore_leaves {
  template <StateLeaf L>
  void operator()(std::string, L&) const {}
};
}  // namespace

namespace spillway {
template void walk_state(archetypes::visited_state&, ignore_leaves&, std::string);
template void walk_state(archetypes::hooked_state&, ignore_leaves&, std::string);
template void walk_state(archetypes::aggregate_state&, ignore_leaves&, std::string);
}  // namespace spillway
