// SPDX-License-Identifier: Apache-2.0
#include <spillway/pipeline/offload_pipeline.hpp>
#include <spillway/tier/counting_tier.hpp>
#include <spillway/tier/file_tier.hpp>
#include <spillway/tier/host_tier.hpp>
#include <spillway/tier/limiting_tier.hpp>
#include <spillway/tier/tier_stack.hpp>

#include <stdexcept>
#include <string>

#include "support/catch.hpp"
#include "support/fault_file_system.hpp"
#include "support/scratch.hpp"
#include "support/train.hpp"

using namespace spillway::literals;
using spillway::errc;
using spillway::host_device;
using spillway::host_tier;
using spillway::offload_pipeline;
using test::call;
using test::cut;
using test::snapshot_of;

namespace {
using engine = spillway::thread_engine<test::fault_file_system>;
using tier = spillway::file_tier<engine>;

struct spilled {
  test::scratch folder;
  std::shared_ptr<test::fault_plan> faults = std::make_shared<test::fault_plan>();
  host_device device{{.memory = 16_MiB}};
  offload_pipeline<tier> pipeline{test::training_layout(),
                                  device,
                                  tier{engine{{.threads = 2}, test::fault_file_system{faults}},
                                       {.directory = folder.path(), .direct = spillway::direct_io::off}},
                                  test::two_groups(),
                                  spillway::sequential_scheduler{},
                                  cut(21504)};
  test::trainer<offload_pipeline<tier>> run{device, pipeline};
};

template <class Call>
spillway::error error_of(Call call) {
  try {
    call();
  } catch (spillway::error const& failed) {
    return failed;
  }
  return {std::error_code{}, {.where = "nothing was thrown"}};
}
}  // namespace

TEST_CASE("a step that fails: the error has path, call and cause, the state is refused, and a fresh run works") {
  auto const kind = GENERATE(call::read, call::write);
  auto const from = GENERATE(1U, 20U, 60U);
  spilled s;
  s.run.initialise();
  auto const fresh = snapshot_of(s.pipeline);
  s.run.step();
  auto const one_step = snapshot_of(s.pipeline);
  s.faults->set(kind, {.from = from, .error = EIO});
  auto const failed = error_of([&] { s.run.step(); });
  CHECK(failed.code() == std::errc::io_error);
  CHECK(failed.about().path.rfind(s.folder.path(), 0) == 0);
  CHECK(std::string(failed.what()).find(failed.about().path) != std::string::npos);
  CHECK(failed.about().where.find(kind == call::read ? "read" : "write") != std::string::npos);
  s.faults->clear();

  CHECK(error_of([&] { s.pipeline.step({}); }).code() == errc::poisoned);
  CHECK(error_of([&] { snapshot_of(s.pipeline); }).code() == errc::poisoned);
  s.run.initialise();
  CHECK((snapshot_of(s.pipeline) == fresh));
  s.run.step();
  CHECK((snapshot_of(s.pipeline) == one_step));
}

TEST_CASE("a step that fails: an import makes the state whole again") {
  spilled s;
  s.run.initialise();
  auto const fresh = snapshot_of(s.pipeline);
  std::vector<std::vector<std::byte>> chunks;
  for (std::size_t c = 0; c < s.pipeline.chunks().size(); ++c) {
    s.pipeline.export_chunk(
        c, [&](std::size_t, std::span<std::byte const> data) { chunks.emplace_back(data.begin(), data.end()); });
  }
  s.faults->set(call::write, {.from = 30, .error = ENOSPC});
  CHECK(error_of([&] { s.run.step(); }).code() == std::errc::no_space_on_device);
  s.faults->clear();
  s.pipeline.begin_import();
  auto next = chunks.begin();
  for (std::size_t c = 0; c < s.pipeline.chunks().size(); ++c) {
    s.pipeline.import_chunk(
        c, [&](std::size_t, std::span<std::byte> to) { std::copy(next->begin(), next->end(), to.begin()), ++next; });
  }
  for (std::size_t t = 0; t < s.pipeline.layout().size(); ++t) {
    std::size_t at = 0;
    s.pipeline.import_parameter(t, [&](std::span<std::byte> to) {
      std::copy_n(fresh.parameters[t].begin() + static_cast<std::ptrdiff_t>(at), to.size(), to.begin());
      at += to.size();
    });
  }
  s.pipeline.visit_counters([](char const*, auto& counter) {
    if constexpr (std::same_as<std::remove_cvref_t<decltype(counter)>, std::uint64_t>) {
      counter = 0;
    } else {
      counter.assign(counter.size(), 0);
    }
  });
  s.pipeline.finish_import();
  CHECK((snapshot_of(s.pipeline) == fresh));
  s.run.step();
  CHECK((snapshot_of(s.pipeline) == test::train(host_tier{64_MiB}, cut(65536), test::two_groups(), {}, 1)));
}

TEST_CASE("an import that fails leaves the state refused") {
  spilled s;
  s.run.initialise();
  s.pipeline.begin_import();
  s.faults->set(call::write, {.error = EIO});
  CHECK(error_of([&] { s.pipeline.import_chunk(0, [](std::size_t, std::span<std::byte>) {}); }).code() ==
        std::errc::io_error);
  CHECK(error_of([&] { s.pipeline.step({}); }).code() == errc::poisoned);
  s.faults->clear();
  CHECK_THROWS_AS(s.pipeline.initialise(
                      [](std::size_t, std::uint64_t, std::span<float>) { throw std::runtime_error("no weights"); }),
                  std::runtime_error);
  CHECK(error_of([&] { s.pipeline.step({}); }).code() == errc::poisoned);
}

TEST_CASE("an export that fails changes nothing: the next export and the next step work") {
  spilled s;
  s.run.initialise();
  s.run.step();
  auto const before = snapshot_of(s.pipeline);
  s.faults->set(call::read, {.from = 10, .times = 1, .error = EIO});
  CHECK(error_of([&] { snapshot_of(s.pipeline); }).code() == std::errc::io_error);
  CHECK((snapshot_of(s.pipeline) == before));
  CHECK(!s.run.step().skipped);
}

TEST_CASE("an update that throws in mid-step poisons the state, and later steps count their time rightly") {
  struct failing_updater : spillway::host_updater<> {
    int* calls_left;
    void update(spillway::chunk_view const& chunk, spillway::update_scalars const& scalars, spillway::native_stream) {
      if (--*calls_left == 0) throw std::runtime_error("the update fails");
      host_updater<>::update(chunk, scalars);
    }
  };
  int calls_left = 3;
  host_device device({.memory = 16_MiB});
  offload_pipeline<host_tier, failing_updater> pipeline(test::training_layout(), device, host_tier{64_MiB},
                                                        failing_updater{test::two_groups(), &calls_left}, {},
                                                        cut(21504));
  test::trainer run(device, pipeline);
  run.initialise();
  CHECK_THROWS_AS(run.step(), std::runtime_error);
  CHECK(error_of([&] { pipeline.step({}); }).code() == errc::poisoned);
  run.initialise();
  for (int i = 0; i < 3; ++i) {
    auto const report = run.step();
    double const busy = report.busy[static_cast<std::size_t>(spillway::resource::host_update)];
    CHECK(busy > 0);
    CHECK(busy <= report.wall);
  }
  CHECK((snapshot_of(pipeline) == test::train(host_tier{64_MiB})));
}

TEST_CASE("a device that fails while gradients come: the step says so and changes no state") {
  spilled s;
  s.run.initialise();
  s.run.step();
  auto const before = snapshot_of(s.pipeline);
  auto stream = s.device.make_stream();
  s.device.submit(stream, [](auto&) { throw std::runtime_error("backward failed"); });
  auto const ready = s.device.record(stream);
  s.run.give_all(2);
  auto const gradient = s.device.allocate(4_B);
  offload_pipeline fresh(spillway::parameter_layout{{{"scale", {}, spillway::dtype::float32}}}, s.device,
                         host_tier{1_MiB});
  test::trainer run(s.device, fresh);
  run.initialise();
  auto const untouched = snapshot_of(fresh);
  fresh.accumulate(0, gradient.data, ready);
  auto const failed = error_of([&] { fresh.step({}); });
  CHECK(failed.code() == errc::device_failed);
  CHECK(std::string(failed.what()).find("backward failed") != std::string::npos);
  CHECK((snapshot_of(fresh) == untouched));
  CHECK(fresh.updates() == 0);
  CHECK((snapshot_of(s.pipeline) == before));  // others on that device go on
  CHECK(!s.pipeline.step({}).skipped);
  s.device.deallocate(gradient);
}

TEST_CASE("a tier that cannot hold the state is refused at construction, and gives everything back") {
  host_device device({.memory = 16_MiB});
  auto const make = [&](auto tiers) {
    return error_of([&] {
      offload_pipeline pipeline(test::training_layout(), device, std::move(tiers), test::two_groups(),
                                spillway::sequential_scheduler{}, cut(21504));
    });
  };
  auto const refused = make(spillway::limiting_tier{host_tier{64_MiB}, 7_MiB});
  CHECK(refused.code() == errc::capacity_exceeded);
  CHECK(refused.about().wanted > 7_MiB);
  auto const counts = std::make_shared<spillway::tier_counts>();
  spillway::tier_stack stack{spillway::share{0.5, spillway::counting_tier{host_tier{64_MiB}, counts}},
                             spillway::share{0.5, host_tier{1_MiB}}};
  CHECK(make(std::move(stack)).code() == errc::capacity_exceeded);
  CHECK(counts->peak_allocated > 0);
  CHECK(counts->allocated == 0);  // what the first tier gave before the second one refused
  CHECK(device.used() == 0_B);
}

TEST_CASE("a pipeline that ends with everything in flight after a failure waits for it") {
  for (unsigned from = 1; from < 40; from += 7) {
    spilled s;
    s.run.initialise();
    s.faults->set(call::read, {.from = from, .error = EIO});
    CHECK(error_of([&] { s.run.step(); }).code() == std::errc::io_error);
  }
}
