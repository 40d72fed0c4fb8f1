// SPDX-License-Identifier: Apache-2.0
#include <spillway/pipeline/memory_plan.hpp>
#include <spillway/pipeline/offload_pipeline.hpp>
#include <spillway/tier/counting_tier.hpp>
#include <spillway/tier/host_tier.hpp>
#include <spillway/tier/tier_stack.hpp>

#include <array>
#include <cmath>
#include <limits>
#include <stdexcept>
#include <utility>

#include "support/catch.hpp"
#include "support/failures.hpp"
#include "support/thread_communicator.hpp"
#include "support/train.hpp"
#include "support/user_kernels.hpp"

using namespace spillway::literals;
using spillway::adamw_kernel;
using spillway::bytes;
using spillway::dtype;
using spillway::errc;
using spillway::host_device;
using spillway::host_tier;
using spillway::host_updater;
using spillway::offload_pipeline;
using spillway::parameter_layout;
using spillway::step_report;
using test::cut;
using test::recorded;
using test::snapshot_of;

namespace {
using test::code_of;
constexpr float infinity = std::numeric_limits<float>::infinity();
constexpr float not_a_number = std::numeric_limits<float>::quiet_NaN();

/// A device, a pipeline in host memory and its trainer, initialised.
struct fixture {
  explicit fixture(parameter_layout layout = test::training_layout(), spillway::pipeline_options options = cut(65536),
                   adamw_kernel kernel = {})
      : pipeline(std::move(layout), device, host_tier{64_MiB}, host_updater<>(kernel, options.pool), {}, options),
        run(device, pipeline) {
    run.initialise();
  }
  host_device device{{.memory = 16_MiB}};
  offload_pipeline<host_tier> pipeline;
  test::trainer<offload_pipeline<host_tier>> run;
};
parameter_layout two_tensors() { return parameter_layout{{{"a", {3000}}, {"b", {1500}}}}; }

}  // namespace

TEST_CASE("offload_pipeline: every narrow parameter is the rounded master after every step") {
  std::vector<spillway::tensor_spec> many;
  for (unsigned i = 0; i < 50; ++i) many.push_back({"t" + std::to_string(i), {i * 41U + 1U}});
  fixture f{parameter_layout{many}, cut(4096, 2)};
  for (int step = 0; step < 4; ++step) {
    auto const now = snapshot_of(f.pipeline);
    bool right = true;
    for (std::size_t t = 0; t < many.size(); ++t) {
      for (std::size_t e = 0; e < f.pipeline.layout().elements(t); ++e) {
        right = right && now.narrow_parameter(t, e) == spillway::narrow(now.value(t, 0, e));
      }
    }
    CHECK(right);
    f.run.step();
  }
}

TEST_CASE("offload_pipeline: small updates add up in the master though bf16 alone would lose them") {
  fixture f{parameter_layout{{{"a", {64}}}}, cut(1024), {.lr = 6e-4, .weight_decay = 0}};
  f.pipeline.initialise([](std::size_t, std::uint64_t, std::span<float> out) {
    for (float& v : out) v = 1;
  });
  double m = 0;
  double v = 0;
  float wanted = 1;
  for (int step = 1; step <= 100; ++step) {
    f.run.give(0, [](std::uint64_t) { return 0.25F; });
    f.pipeline.step({});
    m = 0.9 * m + 0.1 * 0.25;
    v = 0.999 * v + 0.001 * 0.0625;
    wanted -= static_cast<float>(6e-4 * (m / (1 - std::pow(0.9, step))) /
                                 (std::sqrt(v / (1 - std::pow(0.999, step))) + 1e-8));
  }
  auto const now = snapshot_of(f.pipeline);
  CHECK(now.value(0, 0, 63) == Catch::Approx(wanted).epsilon(1e-6));
  CHECK(now.narrow_parameter(0, 63) == spillway::narrow(now.value(0, 0, 63)));
}

TEST_CASE("offload_pipeline: 1 to 4 micro-batches are their fp32 sum, in the order in which they came") {
  for (unsigned k = 1; k <= 4; ++k) {
    auto options = cut(2048);
    options.micro_batches = k;
    fixture narrow{two_tensors(), options};
    auto wide_layout = parameter_layout{{{"a", {3000}, dtype::float32}, {"b", {1500}, dtype::float32}}};
    fixture wide{wide_layout, cut(2048)};
    for (std::uint64_t step = 1; step <= 2; ++step) {  // the second step must not see the first one's sum
      for (std::size_t t = 0; t < 2; ++t) {
        auto const part = [&](std::uint64_t m, std::uint64_t e) {
          return recorded(step * 50 + m * 7 + t, e) * static_cast<float>(1 + m * m);
        };
        for (std::uint64_t m = 0; m < k; ++m) narrow.run.give(t, [&](std::uint64_t e) { return part(m, e); });
        wide.run.give(t, [&](std::uint64_t e) {
          float sum = widen(spillway::narrow(part(0, e)));
          for (std::uint64_t m = 1; m < k; ++m) sum += widen(spillway::narrow(part(m, e)));
          return sum;
        });
      }
      step_report const a = narrow.pipeline.step({.loss_scale = static_cast<double>(k)});
      step_report const b = wide.pipeline.step({.loss_scale = static_cast<double>(k)});
      CHECK(a.gradient_norm == b.gradient_norm);
      CHECK(a.gradients_in == bytes{2 * 4500 * k});
    }
    CHECK((snapshot_of(narrow.pipeline).arrays == snapshot_of(wide.pipeline).arrays));
  }
}

TEST_CASE("offload_pipeline: a gradient that is not finite skips the step, changes no byte and says so") {
  auto const where = GENERATE(std::size_t{0}, std::size_t{1}, std::size_t{5});
  float const bad = std::array{infinity, -infinity, not_a_number}[GENERATE(0U, 1U, 2U)];
  CAPTURE(where, bad);
  fixture f;
  f.run.step();
  auto const before = snapshot_of(f.pipeline);
  f.run.give_all(2);
  std::uint64_t const last = f.pipeline.layout().elements(where) - 1;
  fixture g;
  g.run.step();
  for (std::size_t t = 0; t < g.pipeline.layout().size(); ++t) {
    g.run.give(t, [&](std::uint64_t e) { return t == where && e == last ? bad : recorded(t, e); });
  }
  step_report const report = g.pipeline.step({.max_norm = 1});
  CHECK(report.skipped);
  CHECK(report.update == 2);
  CHECK(report.elements == 0);
  CHECK(g.pipeline.updates() == 1);
  CHECK((snapshot_of(g.pipeline) == before));
  // The gradient of the skipped step is gone: the next step is as if that had never been.
  g.run.give_all(2);
  step_report const next = g.pipeline.step({.max_norm = 1});
  step_report const wanted = f.pipeline.step({.max_norm = 1});
  CHECK(!next.skipped);
  CHECK(next.update == 2);
  CHECK(next.gradient_norm == wanted.gradient_norm);
  CHECK((snapshot_of(g.pipeline) == snapshot_of(f.pipeline)));
}

TEST_CASE("offload_pipeline: a tensor without gradient stays as it is, and later uses the new gradient only") {
  fixture both{two_tensors()};
  fixture alone{two_tensors()};
  auto const give = [](fixture& f, std::size_t t, std::uint64_t seed) {
    f.run.give(t, [&](std::uint64_t e) { return recorded(seed, e); });
  };
  for (std::uint64_t step = 1; step <= 10; ++step) {
    auto const before = snapshot_of(both.pipeline);
    give(both, 0, step);
    if (step % 2 == 0) give(both, 1, 100 + step);
    step_report const report = both.pipeline.step({});
    CHECK(report.elements == (step % 2 == 0 ? 4500U : 3000U));
    auto const after = snapshot_of(both.pipeline);
    if (step % 2 != 0) {
      CHECK((after.arrays[1] == before.arrays[1]));
      CHECK((after.parameters[1] == before.parameters[1]));
    }
    if (step % 2 == 0) {  // b alone, stepped half as often: its own step counts
      give(alone, 1, 100 + step);
      alone.pipeline.step({});
      CHECK((after.arrays[1] == snapshot_of(alone.pipeline).arrays[1]));
    }
  }
  CHECK(snapshot_of(both.pipeline).counters == std::vector<std::uint64_t>{10, 10, 5});
}

TEST_CASE("offload_pipeline: gradients times a power of two with that loss scale give the same bits") {
  fixture plain;
  fixture scaled;
  for (std::uint64_t step = 1; step <= 3; ++step) {
    plain.run.give_all(step);
    scaled.run.give_all(step, 0, 1024);
    step_report const a = plain.pipeline.step({.max_norm = 0.5});
    step_report const b = scaled.pipeline.step({.max_norm = 0.5, .loss_scale = 1024});
    CHECK(a.gradient_norm == b.gradient_norm);
    CHECK(a.clip == b.clip);
    CHECK(a.clip < 1);
  }
  CHECK((snapshot_of(plain.pipeline) == snapshot_of(scaled.pipeline)));
}

TEST_CASE("offload_pipeline: the norm is that of all tensors together, and the clip factor torch's") {
  fixture f;
  double squares = 0;
  for (std::size_t t = 0; t < f.pipeline.layout().size(); ++t) {
    for (std::uint64_t e = 0; e < f.pipeline.layout().elements(t); ++e) squares += std::pow(recorded(200 + t, e), 2);
  }
  f.run.give_all(2);
  step_report const report = f.pipeline.step({.max_norm = 0.25});
  CHECK(report.gradient_norm == Catch::Approx(std::sqrt(squares)).epsilon(1e-12));
  CHECK(report.clip == Catch::Approx(0.25 / (report.gradient_norm + 1e-6)).epsilon(1e-15));
  f.run.give_all(2);
  CHECK(f.pipeline.step({.max_norm = 1e6}).clip == 1);
  f.run.give_all(2);
  CHECK(f.pipeline.step({}).clip == 1);
}

TEST_CASE("offload_pipeline: two ranks step as one does, and one rank's infinity skips both") {
  auto const part = [](unsigned rank) {
    return parameter_layout{{{rank == 0 ? "a" : "b", {rank == 0 ? 3000U : 1500U}}}};
  };
  auto const gradient = [](std::uint64_t step, std::size_t t, std::uint64_t e) { return recorded(10 * step + t, e); };
  fixture whole{two_tensors()};
  double norm = 0;
  for (std::uint64_t step = 1; step <= 3; ++step) {
    if (step == 2) continue;  // the ranks skip that one
    for (std::size_t t = 0; t < 2; ++t) whole.run.give(t, [&](std::uint64_t e) { return gradient(step, t, e); });
    norm = whole.pipeline.step({.max_norm = 0.5}).gradient_norm;
  }
  auto const wanted = snapshot_of(whole.pipeline);
  bool same[2] = {};
  bool skipped[2] = {};
  double norms[2] = {};
  test::on_ranks(2, [&](test::thread_communicator& ranks) {
    unsigned const me = ranks.rank();
    fixture mine{part(me)};
    mine.pipeline.initialise([&](std::size_t, std::uint64_t first, std::span<float> out) {
      for (std::size_t i = 0; i < out.size(); ++i) out[i] = 8 * recorded(1000 + me, first + i);
    });
    for (std::uint64_t step = 1; step <= 3; ++step) {
      bool const breaks = step == 2 && me == 1;
      mine.run.give(0, [&](std::uint64_t e) { return breaks && e == 7 ? infinity : gradient(step, me, e); });
      step_report const report = mine.pipeline.step({.max_norm = 0.5}, ranks);
      if (step == 2) skipped[me] = report.skipped;
      norms[me] = report.gradient_norm;
    }
    auto const now = snapshot_of(mine.pipeline);
    same[me] = now.arrays[0] == wanted.arrays[me] && now.parameters[0] == wanted.parameters[me];
  });
  CHECK((skipped[0] && skipped[1]));
  CHECK((norms[0] == norm && norms[1] == norm));
  CHECK((same[0] && same[1]));
}

TEST_CASE("offload_pipeline: exactly 12 B are read and 12 written per element of the blocked layout, and no gradient") {
  auto const counts = std::make_shared<spillway::tier_counts>();
  host_device device({.memory = 16_MiB});
  offload_pipeline pipeline(test::training_layout(), device, spillway::counting_tier{host_tier{64_MiB}, counts},
                            test::two_groups(), spillway::sequential_scheduler{}, cut(21504));
  test::trainer run(device, pipeline);
  run.initialise();
  std::uint64_t const state = pipeline.layout().blocks() * 1024 * 12;
  CHECK(counts->allocated == state);
  CHECK(counts->bytes_written == state);
  CHECK(counts->bytes_read == 0);
  counts->bytes_written = 0;
  run.give_all(2);  // every tensor has a gradient
  step_report const report = pipeline.step({});
  CHECK(counts->bytes_read == state);
  CHECK(counts->bytes_written == state);
  CHECK(report.file.read == bytes{state});
  CHECK(report.file.written == bytes{state});
  CHECK(report.memory.read == 0_B);
  std::uint64_t const narrow = pipeline.layout().parameter_bytes().count;
  CHECK(narrow == (674207 - 514) * 2 + 514 * 4);
  CHECK(report.gradients_in == bytes{narrow});
  CHECK(report.parameters_out == bytes{narrow});
  CHECK(report.elements == 674207);
}

TEST_CASE("offload_pipeline: chunks that rest in host memory are updated in place and counted apart") {
  auto const counts = std::make_shared<spillway::tier_counts>();
  host_device device({.memory = 16_MiB});
  spillway::tier_stack stack{spillway::share{0.5, host_tier{64_MiB}},
                             spillway::share{0.5, spillway::counting_tier{host_tier{64_MiB}, counts}}};
  offload_pipeline pipeline(parameter_layout{{{"a", {8 * 4096}}}}, device, std::move(stack), host_updater<>{},
                            spillway::sequential_scheduler{}, cut(4096));
  test::trainer run(device, pipeline);
  run.initialise();
  counts->bytes_written = 0;
  step_report const report = run.step();
  CHECK(report.memory.read == bytes{4 * 4096 * 12});
  CHECK(report.memory.written == bytes{4 * 4096 * 12});
  CHECK(report.file.read == bytes{4 * 4096 * 12});
  CHECK(counts->bytes_written == 4 * 4096 * 12);
  CHECK(counts->bytes_read == 4 * 4096 * 12);
}

TEST_CASE("offload_pipeline: what moves between steps is not of the next one") {
  fixture f;
  f.run.step();
  static_cast<void>(snapshot_of(f.pipeline));
  step_report const report = f.run.step();
  CHECK(report.memory.read == report.memory.written);
}

TEST_CASE("offload_pipeline: a tensor 5.2 times the staging memory") {
  std::uint64_t const chunk = 8192;
  unsigned const slots = 3;
  std::uint64_t const large = chunk * slots * 52 / 10;
  parameter_layout const layout{{{"small", {5}}, {"large", {large}}}};
  auto const train = [&](std::uint64_t elements) {
    host_device device({.memory = 4_MiB});
    offload_pipeline pipeline(layout, device, spillway::counting_tier{host_tier{64_MiB}}, host_updater<>{},
                              spillway::sequential_scheduler{}, cut(elements, slots));
    test::trainer run(device, pipeline);
    run.initialise();
    run.step();
    auto const staging = pipeline.staging().asked;
    CHECK(staging.count <= slots * (elements * 16 + 4 * 4096));
    return snapshot_of(pipeline);
  };
  CHECK((train(chunk) == train(1U << 20U)));
}

TEST_CASE("offload_pipeline: what it allocates is what the plan says") {
  auto options = cut(21504, 3);
  options.micro_batches = 2;
  fixture f{test::training_layout(), options};
  spillway::memory_plan plan;
  add_pipeline(plan, f.pipeline.layout(), f.pipeline.updater().schema(), f.pipeline.chunks(), options);
  CHECK(plan.items()[0].what == "staging slots");
  CHECK(plan.items()[0].amount == f.pipeline.staging().asked);
  CHECK(plan.items()[1].amount == spillway::gradient_store_bytes(f.pipeline.layout(), 2));
  CHECK(plan.items().size() == 2);
}

TEST_CASE("offload_pipeline: initialise begins a fresh run, however far the last one was") {
  fixture f;
  auto const fresh = snapshot_of(f.pipeline);
  f.run.step();
  f.run.give_all(2);  // not consumed: belongs to the old run
  f.run.initialise();
  CHECK((snapshot_of(f.pipeline) == fresh));
  CHECK(f.pipeline.updates() == 0);
  CHECK(code_of([&] { f.pipeline.step({}); }) == errc::gradient_missing);
}

TEST_CASE("offload_pipeline: before it is initialised, and while it is imported, it refuses to step and to export") {
  host_device device({.memory = 4_MiB});
  offload_pipeline pipeline(two_tensors(), device, host_tier{64_MiB});
  test::trainer run(device, pipeline);
  auto const refused = [&] {
    return code_of([&] { pipeline.step({}); }) == errc::poisoned &&
           code_of([&] { snapshot_of(pipeline); }) == errc::poisoned;
  };
  CHECK(refused());
  run.initialise();
  CHECK(!refused());
  pipeline.begin_import();
  CHECK(refused());
}

TEST_CASE("offload_pipeline: options that make no sense are refused by name") {
  host_device device({.memory = 4_MiB});
  auto const make = [&](spillway::pipeline_options options, parameter_layout layout = two_tensors(),
                        host_updater<> updater = host_updater<>{}) {
    return code_of([&] {
      offload_pipeline<host_tier>(std::move(layout), device, host_tier{64_MiB}, std::move(updater), {}, options);
    });
  };
  CHECK(make({.slots = 1}) == errc::invalid_option);
  CHECK(make({.slots = 0}) == errc::invalid_option);
  CHECK(make({.chunk_elements = 1023}) == errc::invalid_option);
  CHECK(make({.micro_batches = 0}) == errc::invalid_option);
  CHECK(make(cut(1024), parameter_layout{{{"a", {10}, dtype::bfloat16, 2}}}, test::two_groups()) ==
        errc::invalid_option);
  CHECK(make(cut(1024), parameter_layout{{{"a", {10}, dtype::bfloat16, 1}}}, test::two_groups()) == std::error_code{});
  CHECK(make(cut(1024), parameter_layout{{{"a", {10}, dtype::bfloat16, 7}}}) == std::error_code{});

  fixture f{two_tensors()};
  f.run.give_all(1);
  auto const before = snapshot_of(f.pipeline);
  double const nan = std::numeric_limits<double>::quiet_NaN();
  double const inf = std::numeric_limits<double>::infinity();
  for (double const bad : {0.0, -1.0, nan, -nan, inf, -inf})
    CHECK(code_of([&] { f.pipeline.step({.loss_scale = bad}); }) == errc::invalid_option);
  for (double const bad : {nan, -nan, inf, -inf})
    CHECK(code_of([&] { f.pipeline.step({.learning_rate_factor = bad}); }) == errc::invalid_option);
  for (double const bad : {-1.0, nan, inf})
    CHECK(code_of([&] { f.pipeline.step({.max_norm = bad}); }) == errc::invalid_option);
  CHECK(code_of([&] { f.run.give_all(1, 1); }) == errc::invalid_option);  // a second micro-batch
  CHECK((snapshot_of(f.pipeline) == before));
  CHECK(!f.pipeline.step({}).skipped);  // the gradients are still there
}

TEST_CASE("offload_pipeline: more micro-batches than planned are refused, naming the tensor") {
  auto options = cut(2048);
  options.micro_batches = 2;
  fixture f{two_tensors(), options};
  f.run.give_all(1, 0);
  f.run.give_all(1, 1);
  try {
    f.run.give_all(1, 2);
    FAIL("no error");
  } catch (spillway::error const& failed) {
    CHECK(failed.code() == errc::invalid_option);
    CHECK(std::string(failed.what()).find("tensor a got more micro-batches than the 2") != std::string::npos);
  }
}

TEST_CASE("offload_pipeline: updaters that it cannot run are refused by name") {
  struct odd_updater : host_updater<> {
    spillway::updater_schema odd = host_updater<>::schema();
    [[nodiscard]] spillway::updater_schema const& schema() const noexcept { return odd; }
  };
  host_device device({.memory = 4_MiB});
  odd_updater on_device;
  on_device.odd.on_device = true;
  odd_updater two_passes;
  two_passes.odd.passes = 2;
  using pipeline = offload_pipeline<host_tier, odd_updater>;
  CHECK(code_of([&] { pipeline(two_tensors(), device, host_tier{64_MiB}, std::move(on_device)); }) ==
        errc::unsupported);
  CHECK(code_of([&] { pipeline(two_tensors(), device, host_tier{64_MiB}, std::move(two_passes)); }) ==
        errc::unsupported);
}

TEST_CASE("offload_pipeline: its rule names the kernel and the rounding, and it deduces its policies") {
  using stored = spillway::stored<adamw_kernel, spillway::rounding::nearest_away, spillway::float32, spillway::float32,
                                  spillway::float32>;
  host_device device({.memory = 4_MiB});
  offload_pipeline const plain{two_tensors(), device, host_tier{64_MiB}};
  static_assert(
      std::same_as<decltype(plain),
                   offload_pipeline<host_tier, host_updater<>, spillway::sequential_scheduler, host_device> const>);
  CHECK(plain.rule() == "adamw/nearest_even");
  offload_pipeline const away{two_tensors(), device, host_tier{64_MiB}, host_updater<stored>{}};
  CHECK(away.rule() == "adamw/nearest_away");
}

TEST_CASE("offload_pipeline: a scheduler that orders nonsense is refused, and the step can be tried again") {
  struct sometimes_wrong : spillway::sequential_scheduler {
    int* mode;
    void order(spillway::step_outline const& step, std::span<std::uint32_t> out) const {
      sequential_scheduler::order(step, out);
      if (*mode == 1) out.back() = 0;
      if (*mode == 2) out.back() = step.chunks;
    }
  };
  auto options = cut(1024);
  options.micro_batches = 2;
  int mode = 0;
  host_device device({.memory = 4_MiB});
  offload_pipeline<host_tier, host_updater<>, sometimes_wrong> pipeline(
      two_tensors(), device, host_tier{64_MiB}, host_updater<>{}, sometimes_wrong{{}, &mode}, options);
  test::trainer run(device, pipeline);
  run.initialise();
  fixture wanted{two_tensors(), options};
  for (std::uint64_t micro = 0; micro < 2; ++micro) {
    run.give_all(1, micro);
    wanted.run.give_all(1, micro);
  }
  for (mode = 1; mode <= 2; ++mode) CHECK(code_of([&] { pipeline.step({}); }) == errc::invalid_option);
  mode = 0;
  pipeline.step({});
  wanted.pipeline.step({});
  CHECK((snapshot_of(pipeline) == snapshot_of(wanted.pipeline)));
}

TEST_CASE("offload_pipeline: a step that fails before the first update can be tried again, and sums nothing twice") {
  struct failing_once : spillway::single_process {
    bool* failed;
    void all_reduce_sum(std::span<std::int64_t>) const {
      if (!std::exchange(*failed, true)) throw std::runtime_error("the network is down");
    }
  };
  auto options = cut(1024);
  options.micro_batches = 2;
  fixture f{two_tensors(), options};
  fixture wanted{two_tensors(), options};
  for (std::uint64_t micro = 0; micro < 2; ++micro) {
    f.run.give_all(1, micro);
    wanted.run.give_all(1, micro);
  }
  bool failed = false;
  failing_once ranks{{}, &failed};
  CHECK_THROWS_AS(f.pipeline.step({}, ranks), std::runtime_error);
  CHECK(f.pipeline.updates() == 0);
  f.pipeline.step({}, ranks);
  wanted.pipeline.step({});
  CHECK((snapshot_of(f.pipeline) == snapshot_of(wanted.pipeline)));
}

TEST_CASE("offload_pipeline: a scheduler is told the step, the chunks, the slots and afterwards the times") {
  struct seen {
    spillway::step_outline outline;
    spillway::step_times times;
    int observed = 0;
  };
  struct watching : spillway::sequential_scheduler {
    seen* to;
    void order(spillway::step_outline const& step, std::span<std::uint32_t> out) const {
      to->outline = step;
      sequential_scheduler::order(step, out);
    }
    void observe(spillway::step_times const& times) const {
      to->times = times;
      ++to->observed;
    }
  };
  seen saw;
  host_device device({.memory = 4_MiB});
  offload_pipeline<host_tier, host_updater<>, watching> pipeline(two_tensors(), device, host_tier{64_MiB},
                                                                 host_updater<>{}, watching{{}, &saw}, cut(1024, 3));
  test::trainer run(device, pipeline);
  run.initialise();
  run.step();
  step_report const report = run.step();
  CHECK(saw.outline.number == 2);
  CHECK(saw.outline.chunks == 5);
  CHECK(saw.outline.slots == 3);
  CHECK(saw.observed == 2);
  CHECK(saw.times.wall == report.wall);
  CHECK(saw.times.update == report.busy[static_cast<std::size_t>(spillway::resource::host_update)]);
  CHECK(saw.times.update > 0);
}

TEST_CASE("offload_pipeline: a model of no tensors, or of empty ones") {
  host_device device({.memory = 4_MiB});
  offload_pipeline nothing(parameter_layout{}, device, host_tier{64_MiB});
  test::trainer run(device, nothing);
  run.initialise();
  CHECK(code_of([&] { nothing.step({}); }) == errc::gradient_missing);
  fixture empty{parameter_layout{{{"none", {0}}, {"neither", {3, 0}, dtype::float32}}}};
  step_report const report = empty.run.step();
  CHECK(!report.skipped);
  CHECK(report.elements == 0);
  CHECK(empty.pipeline.updates() == 1);
}

TEST_CASE("offload_pipeline: the state counts from any step number, as a resumed one does") {
  fixture f{two_tensors()};
  f.pipeline.visit_counters([](char const*, auto& counter) {
    if constexpr (std::same_as<std::remove_cvref_t<decltype(counter)>, std::uint64_t>) {
      counter = (std::uint64_t{1} << 24U) + 1;
    } else {
      for (auto& n : counter) n = (std::uint64_t{1} << 24U) + 1;
    }
  });
  f.run.give(0, [](std::uint64_t) { return 0.5F; });
  f.run.give(1, [](std::uint64_t) { return 0.5F; });
  CHECK(f.pipeline.step({}).update == (std::uint64_t{1} << 24U) + 2);
  CHECK(snapshot_of(f.pipeline).counters == std::vector<std::uint64_t>(3, (std::uint64_t{1} << 24U) + 2));
}
