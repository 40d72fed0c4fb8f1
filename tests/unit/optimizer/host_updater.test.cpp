// SPDX-License-Identifier: Apache-2.0
#include <spillway/optimizer/any_updater.hpp>
#include <spillway/optimizer/host_updater.hpp>
#include <spillway/optimizer/stored.hpp>

#include <array>
#include <concepts>
#include <memory>
#include <string>
#include <vector>

#include "support/catch.hpp"
#include "support/child.hpp"
#include "support/exact_split.hpp"
#include "support/failures.hpp"
#include "support/float_bits.hpp"
#include "support/sanitizers.hpp"
#include "support/training_run.hpp"
#include "support/update_by_hand.hpp"
#include "support/user_kernels.hpp"

using spillway::adamw_kernel;
using spillway::bf16;
using spillway::errc;
using spillway::f32;
using spillway::float32;
using spillway::host_updater;
using spillway::rounding;
using spillway::stored;
using spillway::thread_pool;
using test::bits;
using test::recorded;
using test::update_by_hand;

namespace {
using test::code_of;
std::vector<float> values(std::uint64_t seed, std::size_t count) {
  std::vector<float> out(count);
  for (std::size_t e = 0; e < count; ++e) out[e] = recorded(seed, e);
  return out;
}
template <class T>
float wide(T x) {
  return spillway::widen(x);
}
/// The updater against the rule itself, one element at a time: narrow in, scaled, updated, narrow out.
template <class G, class P>
void same_as_by_element(std::size_t count) {
  CAPTURE(count);
  adamw_kernel const rule{.lr = 0.01};
  host_updater<> updater(rule, std::make_shared<thread_pool>(1));
  update_by_hand<G, P> hand(3, count);
  auto const masters = values(1, count);
  hand.initialise(updater, masters);
  std::vector<std::array<f32, 3>> wanted(count);
  for (std::size_t e = 0; e < count; ++e) wanted[e][0] = f32{masters[e]};
  for (std::uint64_t step = 1; step <= 2; ++step) {
    auto const gradient = values(step + 1, count);
    hand.update(updater, gradient, step, {.learning_rate_factor = 0.5, .gradient_scale = 0.25F});
    auto const constants = rule.prepare({.number = step, .learning_rate_factor = 0.5});
    for (std::size_t e = 0; e < count; ++e) {
      f32(&state)[3] = *reinterpret_cast<f32(*)[3]>(wanted[e].data());
      adamw_kernel::update(constants, f32{gradient[e]} * f32{0.25F}, state);
    }
  }
  bool same = true;
  for (std::size_t e = 0; e < count; ++e) {
    for (std::size_t a = 0; a < 3; ++a) same = same && bits(hand.state(a, e)) == bits(wanted[e][a].value);
    P parameter{};
    wanted[e][0].template store<rounding::nearest_even>(&parameter);
    same = same && bits(wide(hand.parameter(e))) == bits(wide(parameter));
  }
  CHECK(same);
  CHECK(hand.guards_whole());
}
}  // namespace

TEMPLATE_TEST_CASE("host_updater: any size equals the rule by element, and writes nothing beside the elements", "",
                   (std::pair<bf16, bf16>), (std::pair<bf16, float>), (std::pair<float, bf16>),
                   (std::pair<float, float>)) {
  using G = typename TestType::first_type;
  using P = typename TestType::second_type;
  for (std::size_t count = 1; count <= 65; ++count) same_as_by_element<G, P>(count);
  for (std::size_t const count : {1023U, 1024U, 1025U, 32767U, 32768U, 32769U, 100000U})
    same_as_by_element<G, P>(count);
}

TEST_CASE("host_updater: threads share a chunk and give the bits of one") {
  auto const run = [](unsigned threads) {
    host_updater<> updater(adamw_kernel{}, std::make_shared<thread_pool>(threads));
    CHECK(updater.threads() == threads);
    update_by_hand<bf16, bf16> hand(3, 300001);
    hand.initialise(updater, values(1, 300001));
    for (std::uint64_t step = 1; step <= 3; ++step) hand.update(updater, values(step + 1, 300001), step);
    return hand.all();
  };
  auto const one = run(1);
  CHECK((run(2) == one));
  CHECK((run(7) == one));
}

TEST_CASE("host_updater: a gradient of NaN leaves canonical NaN, never another") {
  host_updater<> updater(adamw_kernel{}, std::make_shared<thread_pool>(1));
  update_by_hand<float, bf16> hand(3, 20);
  hand.initialise(updater, values(1, 20));
  auto gradient = values(2, 20);
  gradient[3] = test::float_of(0xffc12345U);
  gradient[18] = test::float_of(0x7f800001U);
  hand.update(updater, gradient, 1);
  for (std::size_t const e : {std::size_t{3}, std::size_t{18}}) {
    for (std::size_t a = 0; a < 3; ++a) CHECK(bits(hand.state(a, e)) == 0x7fc00000U);
    CHECK(hand.parameter(e).bits == 0x7fc0U);
  }
  CHECK(!test::is_nan(hand.state(0, 4)));
}

#if defined(__x86_64__)
TEST_CASE("host_updater: a thread that flushes denormals gives the same bits") {
  std::vector<float> tiny(100);
  for (std::size_t e = 0; e < tiny.size(); ++e)
    tiny[e] = test::float_of(static_cast<std::uint32_t>(1 + e * 7919 % 0x7fffff));
  auto const run = [&](unsigned threads) {
    host_updater<> updater(adamw_kernel{.lr = 1e-30}, std::make_shared<thread_pool>(threads));
    update_by_hand<float, float> hand(3, tiny.size());
    hand.initialise(updater, tiny);
    hand.update(updater, tiny, 1);
    return hand.all();
  };
  auto const wanted = run(1);
  unsigned const before = _mm_getcsr();
  _mm_setcsr(0x9fc0U);
  auto const flushing = run(1);
  auto const started_flushing = run(3);
  _mm_setcsr(before);
  bool same = true;
  for (std::size_t a = 0; a < 3; ++a) {
    same = same && std::memcmp(wanted[a].data(), flushing[a].data(), wanted[a].size() * 4) == 0 &&
           std::memcmp(wanted[a].data(), started_flushing[a].data(), wanted[a].size() * 4) == 0;
  }
  CHECK(same);
  CHECK(wanted[1][wanted[1].size() / 2] != 0);  // there is something to flush
}
#endif

TEST_CASE("host_updater: each group has its own hyper-parameters, and a group that has none is refused by number") {
  host_updater<> updater(std::vector<adamw_kernel>{{.lr = 0.1}, {.lr = 0}}, std::make_shared<thread_pool>(1));
  CHECK(updater.schema().groups == 2);
  update_by_hand<float, float> hand(3, 5);
  hand.initialise(updater, values(1, 5));
  hand.group = 1;
  hand.update(updater, values(2, 5), 1);
  CHECK(hand.state(0, 0) == recorded(1, 0));  // lr 0
  hand.group = 0;
  hand.update(updater, values(2, 5), 1);
  CHECK(hand.state(0, 0) != recorded(1, 0));
  auto const before = hand.all();
  hand.group = 2;
  CHECK(code_of([&] { hand.update(updater, values(2, 5), 1); }) == errc::invalid_option);
  CHECK(code_of([&] { hand.initialise(updater, values(2, 5)); }) == errc::invalid_option);
  CHECK((hand.all() == before));
  CHECK(code_of([] { host_updater<> const none{std::vector<adamw_kernel>{}}; }) == errc::invalid_option);
  host_updater<> one;
  CHECK(one.schema().groups == 0);
  hand.update(one, values(2, 5), 1);  // one kernel serves any group
}

TEST_CASE("host_updater: its schema says what the kernel and the codecs are") {
  host_updater<> const plain;
  auto const& schema = plain.schema();
  CHECK(schema.kernel == "adamw");
  REQUIRE(schema.arrays.size() == 3);
  CHECK(schema.arrays[0] == spillway::stored_array{"master", "float32", spillway::dtype::float32, 4096});
  CHECK(schema.arrays[2].name == "exp_avg_sq");
  CHECK(schema.rule == rounding::nearest_even);
  CHECK(!schema.needs_parameter);
  CHECK(schema.scratch_per_element == spillway::bytes{0});
  host_updater<stored<adamw_kernel, rounding::nearest_away, test::exact_split, float32, float32>> const split;
  CHECK(split.schema().arrays[0] ==
        spillway::stored_array{"master", "exact_split/nearest_away/1", spillway::dtype::u16, 2048});
  CHECK(split.schema().rule == rounding::nearest_away);
  CHECK(split.schema().needs_parameter);
  host_updater<test::normalised_momentum_kernel> const whole;
  CHECK(whole.schema().by_group == std::vector{spillway::granularity::tensor});
  CHECK(whole.schema().scratch_per_element == spillway::bytes{4});
}

TEST_CASE("host_updater: a tensor that a rule needs whole and that comes in part is a broken contract") {
  if constexpr (test::thread_sanitizer) SKIP("forks beside threads");
  host_updater<test::normalised_momentum_kernel> updater(test::normalised_momentum_kernel{},
                                                         std::make_shared<thread_pool>(1));
  float master[4] = {};
  float buffer[4] = {};
  float gradient[4] = {1, 1, 1, 1};
  float parameter[4] = {};
  std::byte* const arrays[] = {reinterpret_cast<std::byte*>(master), reinterpret_cast<std::byte*>(buffer)};
  std::uint64_t const shape[] = {2, 4};
  spillway::run_view const half{.count = 4,
                                .shape = shape,
                                .gradient_type = spillway::dtype::float32,
                                .parameter_type = spillway::dtype::float32,
                                .gradient = reinterpret_cast<std::byte const*>(gradient),
                                .parameter = reinterpret_cast<std::byte*>(parameter)};
  CHECK(test::aborts([&] { updater.update({arrays, std::span{&half, 1}}, {}); }));
}

TEST_CASE("any_updater: owns what it is made of, and passes every call on") {
  struct counting : host_updater<> {
    std::shared_ptr<int> updates = std::make_shared<int>(0);
    void update(spillway::chunk_view const& chunk, spillway::update_scalars const& scalars, spillway::native_stream) {
      ++*updates;
      host_updater<>::update(chunk, scalars);
    }
  };
  counting inside;
  auto const updates = inside.updates;
  spillway::any_updater first{std::move(inside)};
  CHECK(updates.use_count() == 2);
  spillway::any_updater erased = std::move(first);
  CHECK(erased.schema().kernel == "adamw");
  update_by_hand<float, bf16> through(3, 40);
  update_by_hand<float, bf16> direct(3, 40);
  host_updater<> plain;
  through.initialise(erased, values(1, 40));
  direct.initialise(plain, values(1, 40));
  through.update(erased, values(2, 40), 1);
  direct.update(plain, values(2, 40), 1);
  CHECK(*updates == 1);
  CHECK((through.all() == direct.all()));
  erased = spillway::any_updater{host_updater<test::momentum_kernel>{}};
  CHECK(updates.use_count() == 1);
  CHECK(erased.schema().kernel == "momentum");
}
