// SPDX-License-Identifier: Apache-2.0
#include <spillway/core/counter_rng.hpp>
#include <spillway/state/sampler_position.hpp>
#include <spillway/state/state_schema.hpp>
#include <spillway/state/state_walk.hpp>
#include <spillway/testing/training_state_archetypes.hpp>

#include <map>
#include <string>
#include <vector>

#include "support/catch.hpp"

namespace {
using namespace spillway;

struct collect {
  std::vector<leaf_description> leaves;
  template <StateLeaf L>
  void operator()(std::string name, L& leaf) {
    leaves.push_back(detail::leaf_access<L>::describe(leaf));
    leaves.back().name = std::move(name);
  }
};
template <class State>
std::vector<leaf_description> leaves_of(State& state) {
  collect handler;
  walk_state(state, handler);
  return std::move(handler.leaves);
}
template <class State>
std::vector<std::string> names_of(State& state) {
  std::vector<std::string> out;
  for (auto const& leaf : leaves_of(state)) out.push_back(leaf.name + ": " + to_string(leaf));
  return out;
}
using lines = std::vector<std::string>;

enum class phase : std::uint16_t { warm_up, main };

struct inner {
  float scale = 1;
  std::array<std::uint8_t, 4> bytes{};
};
struct run_state {
  std::uint64_t step = 0;
  double loss_scale = 65536;
  bool done = false;
  phase where = phase::main;
  counter_rng rng{};
  sampler_position sampler{};
  std::string note{"hello"};
  std::vector<std::byte> user{};
  std::vector<float> ema = {1, 2, 3};
  inner nested{};
  std::map<int, int> cache{};
  std::vector<float> weights = {1, 2, 3, 4, 5, 6};

  template <class V>
  void visit_state(V& visit) {
    visit("step", step);
    visit("loss_scale", loss_scale);
    visit("done", done);
    visit("where", where);
    visit("rng", rng);
    visit("sampler", sampler);
    visit("note", note);
    visit("user", user);
    visit("ema", ema);
    visit("nested", nested);
    visit("cache", transient(cache));
    visit("weights", tensor_leaf{std::span{weights}, {2, 3}});
  }
};

// Both a member function and a hook: the member function wins. An aggregate with either is not looked into.
struct twice {
  int a = 0;
  template <class V>
  void visit_state(V& visit) {
    visit("member", a);
  }
  template <class V>
  friend void visit_state(V& visit, twice& state) {
    visit("hook", state.a);
  }
};
struct hooked_aggregate {
  int a = 0;
  template <class V>
  friend void visit_state(V& visit, hooked_aggregate& state) {
    visit("hook", state.a);
  }
};
struct slashed {
  int a = 0;
  std::string name;
  explicit slashed(std::string n) : name(std::move(n)) {}
  template <class V>
  void visit_state(V& visit) {
    visit(name, a);
  }
};
}  // namespace

TEST_CASE("state_walk: every leaf is reached in order with its full name and type") {
  run_state state;
  CHECK(names_of(state) == lines{"step: scalar U64", "loss_scale: scalar F64", "done: scalar BOOL", "where: scalar U16",
                                 "rng/seed: scalar U64", "rng/stream: scalar U64", "rng/counter: scalar U64",
                                 "sampler/seed: scalar U64", "sampler/samples_drawn: scalar U64", "note: string",
                                 "user: bytes", "ema: tensor F32 [any]", "nested/0: scalar F32",
                                 "nested/1: tensor U8 [4]", "weights: tensor F32 [2,3]"});
}

TEST_CASE("state_walk: member function before hook before aggregate") {
  twice both;
  CHECK(names_of(both) == lines{"member: scalar I32"});
  hooked_aggregate hooked;
  CHECK(names_of(hooked) == lines{"hook: scalar I32"});
  testing::aggregate_state plain;
  CHECK(names_of(plain) == lines{"0: scalar U64", "1: string"});
  testing::visited_state visited;
  CHECK(names_of(visited) == lines{"step: scalar U64"});
  testing::hooked_state free;
  CHECK(names_of(free) == lines{"step: scalar U64"});
}

TEST_CASE("state_walk: a transient member of an aggregate is left out and the others keep their places") {
  struct with_cache {
    int a = 0;
    transient<std::map<int, int>> cache{};
    int b = 0;
  } state;
  CHECK(names_of(state) == lines{"0: scalar I32", "2: scalar I32"});
}

TEST_CASE("state_walk: names that cannot be joined are refused") {
  for (char const* name : {"", "a/b", "/"}) {
    slashed state{name};
    CHECK_THROWS_WITH(leaves_of(state), Catch::Matchers::Contains("visit_state"));
  }
}

TEST_CASE("leaf: bytes come back into an equal value, and a bool from any byte") {
  auto const round_trip = [](auto const& from, auto& to) {
    using leaf = detail::leaf_access<std::remove_cvref_t<decltype(from)>>;
    auto const view = leaf::view(from);
    leaf::prepare(to, view.size());
    leaf::assign(to, view);
    return to == from;
  };
  double number = 0;
  CHECK(round_trip(-0.1, number));
  phase where = phase::warm_up;
  CHECK(round_trip(phase::main, where));
  std::string text = "longer than what comes";
  CHECK(round_trip(std::string("a\0b", 3), text));
  CHECK(round_trip(std::string(), text));
  std::vector<float> values{9};
  CHECK(round_trip(std::vector<float>{1, 2, 3}, values));
  std::array<bool, 3> flags{};
  CHECK(round_trip(std::array<bool, 3>{true, false, true}, flags));

  bool flag = false;
  std::byte const odd[] = {std::byte{0x42}};
  detail::leaf_access<bool>::assign(flag, odd);
  CHECK(flag == true);
  std::byte const many[] = {std::byte{0}, std::byte{7}, std::byte{255}};
  detail::leaf_access<std::array<bool, 3>>::assign(flags, many);
  CHECK(flags == std::array<bool, 3>{false, true, true});
}

TEST_CASE("state_schema: the hash changes with names, kinds, dtypes, order and fixed shapes, not with values") {
  run_state state;
  auto const base = schema_hash(leaves_of(state));
  CHECK(to_string(base) == "91a2a8fec12ec822f699e6eb9578dbaf");
  state.step = 9;
  state.note = "longer";
  state.ema.assign(10, 1.0F);
  CHECK(schema_hash(leaves_of(state)) == base);

  auto const leaves = leaves_of(state);
  auto const changed = [&](std::size_t index, auto change) {
    auto copy = leaves;
    change(copy[index]);
    return schema_hash(copy);
  };
  CHECK_FALSE(changed(0, [](auto& l) { l.name = "Step"; }) == base);
  CHECK_FALSE(changed(0, [](auto& l) { l.type = dtype::i64; }) == base);
  CHECK_FALSE(changed(9, [](auto& l) { l.kind = leaf_kind::opaque; }) == base);
  CHECK_FALSE(changed(14, [](auto& l) { l.shape = {3, 2}; }) == base);
  CHECK_FALSE(changed(14, [](auto& l) { l.shape = {6}; }) == base);
  CHECK_FALSE(changed(14, [](auto& l) { l.resizable = true; }) == base);
  auto swapped = leaves;
  std::swap(swapped[0], swapped[1]);
  CHECK_FALSE(schema_hash(swapped) == base);
}
