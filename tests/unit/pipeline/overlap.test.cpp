// SPDX-License-Identifier: Apache-2.0
#include <spillway/pipeline/offload_pipeline.hpp>
#include <spillway/tier/file_tier.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <thread>

#include "support/allocation_count.hpp"
#include "support/catch.hpp"
#include "support/late_tier.hpp"
#include "support/scratch.hpp"
#include "support/train.hpp"

using namespace spillway::literals;
using namespace std::chrono_literals;
using spillway::bytes;
using spillway::host_device;
using spillway::host_tier;
using spillway::offload_pipeline;
using spillway::resource;
using test::cut;
using test::snapshot_of;
using test::train;

namespace {
/// Takes as long as a transfer of the tier.
struct slow_updater : spillway::host_updater<> {
  using host_updater<>::host_updater;
  void update(spillway::chunk_view const& chunk, spillway::update_scalars const& scalars, spillway::native_stream) {
    host_updater<>::update(chunk, scalars);
    std::this_thread::sleep_for(5ms);
  }
};
bool overlap(spillway::timeline_event const& a, spillway::timeline_event const& b) {
  return a.begin < b.end && b.begin < a.end;
}
}  // namespace

TEST_CASE("same bits: a tier whose transfers move their bytes at the last moment") {
  auto const wanted = train(host_tier{64_MiB});
  for (unsigned const slots : {2U, 3U, 6U}) {
    CHECK((train(test::late_tier{64_MiB, 1ms}, cut(21504, slots)) == wanted));
  }
}

TEST_CASE("a step overlaps: while chunk i is updated, i+1 is read and i-1 is written") {
  spillway::timeline trace(10000);
  auto options = cut(21504, 6);
  options.trace = &trace;
  host_device device({.memory = 16_MiB});
  offload_pipeline<test::late_tier, slow_updater> pipeline(
      test::training_layout(), device, test::late_tier{64_MiB, 5ms}, slow_updater{}, {.depth = 1}, options);
  test::trainer run(device, pipeline);
  run.initialise();
  std::size_t const before = trace.events().size();
  auto const report = run.step();
  auto const find = [&](resource where, std::string_view what, std::uint32_t chunk) -> spillway::timeline_event const& {
    auto const found =
        std::find_if(trace.events().begin() + static_cast<std::ptrdiff_t>(before), trace.events().end(),
                     [&](auto const& e) { return e.where == where && e.what == what && e.number == chunk; });
    REQUIRE(found != trace.events().end());
    return *found;
  };
  auto const chunks = static_cast<std::uint32_t>(pipeline.chunks().size());
  REQUIRE(chunks > 20);
  unsigned together = 0;
  for (std::uint32_t i = 1; i + 1 < chunks; ++i) {
    auto const& read = find(resource::file_read, "read", i + 1);
    auto const& update = find(resource::host_update, "update", i);
    auto const& write = find(resource::file_write, "write", i - 1);
    if (overlap(read, update) && overlap(update, write) && overlap(read, write)) ++together;
  }
  CHECK(together * 2 >= chunks);
  double busy = 0;
  for (auto const r : {resource::file_read, resource::host_update, resource::file_write}) {
    double const one = report.busy[static_cast<std::size_t>(r)];
    CHECK(one <= report.wall);
    busy += one;
  }
  CHECK(busy > 1.4 * report.wall);
  CHECK(trace.dropped() == 0);
}

TEST_CASE("the report says what the loop waited for") {
  host_device device({.memory = 16_MiB});
  auto const waited = [&](unsigned depth, auto updater) {
    offload_pipeline<test::late_tier, decltype(updater)> pipeline(test::training_layout(), device,
                                                                  test::late_tier{64_MiB, 3ms}, std::move(updater),
                                                                  {.depth = depth}, cut(65536, 8));
    test::trainer run(device, pipeline);
    run.initialise();
    return run.step();
  };
  auto const behind = waited(0, test::two_groups());
  CHECK(behind.waited_for_read > 0.7 * 0.003 * 11);  // each of 11 chunks is read when it is wanted
  CHECK(behind.waited_for_read <= behind.wall);
  auto const ahead = waited(4, slow_updater{});
  CHECK(ahead.waited_for_read < 0.5 * behind.waited_for_read);
}

TEST_CASE("delayed device copies: a slow link gives the bits of a fast one") {
  auto const wanted = train(host_tier{64_MiB});
  host_device device({.memory = 16_MiB, .link_bytes_per_second = 100e6});
  offload_pipeline pipeline(test::training_layout(), device, host_tier{64_MiB}, test::two_groups(),
                            spillway::sequential_scheduler{}, cut(21504));
  test::trainer run(device, pipeline);
  run.initialise();
  for (int i = 0; i < 3; ++i) run.step();
  CHECK((snapshot_of(pipeline) == wanted));
}

TEST_CASE("delayed device copies: a gradient is taken after its own ready event, whichever stream that is of") {
  host_device device({.memory = 16_MiB, .link_bytes_per_second = 200e6});
  spillway::parameter_layout const layout{{{"a", {20000}}, {"b", {20000}}}};
  auto const make = [&] { return std::make_unique<offload_pipeline<host_tier>>(layout, device, host_tier{64_MiB}); };
  auto const plain = make();
  test::trainer calm(device, *plain);
  calm.initialise();
  calm.give(0, [](std::uint64_t e) { return test::recorded(1, e); });
  calm.give(1, [](std::uint64_t e) { return test::recorded(2, e); });
  plain->step({});

  auto const hurried = make();
  test::trainer run(device, *hurried);
  run.initialise();
  auto const block = device.allocate(bytes{40000});
  std::vector<spillway::bf16> garbage(20000, spillway::narrow(77.0F));
  std::vector<spillway::bf16> gradient[2];
  for (std::uint64_t t = 0; t < 2; ++t) {
    for (std::uint64_t e = 0; e < 20000; ++e) gradient[t].push_back(spillway::narrow(test::recorded(t + 1, e)));
  }
  // Both tensors through one buffer, each on a stream of its own that starts late.
  host_device::event free{};
  for (std::size_t t = 0; t < 2; ++t) {
    auto stream = device.make_stream();
    std::atomic<bool> handed_over{false};
    device.submit(stream, [&handed_over](auto&) {
      while (!handed_over) std::this_thread::yield();
    });
    device.wait(stream, free);
    device.copy_to_device(stream, block.data, std::as_bytes(std::span{gradient[t]}));
    auto const ready = device.record(stream);
    free = hurried->accumulate(t, block.data, ready);
    CHECK(!free.done());  // it returned before the gradient was even there
    handed_over = true;
    // Overwritten at the first moment at which that is allowed.
    device.wait(stream, free);
    device.copy_to_device(stream, block.data, std::as_bytes(std::span{garbage}));
    free = device.record(stream);
  }
  hurried->step({});
  CHECK((snapshot_of(*hurried) == snapshot_of(*plain)));
  device.deallocate(block);
}

TEST_CASE("delayed device copies: once parameters_ready is done the device has the new parameter") {
  host_device device({.memory = 16_MiB, .link_bytes_per_second = 100e6});
  spillway::parameter_layout const layout{{{"a", {30000}}}};
  offload_pipeline pipeline(layout, device, host_tier{64_MiB}, spillway::host_updater<>{},
                            spillway::sequential_scheduler{}, cut(4096));
  test::trainer run(device, pipeline);
  run.initialise();
  run.step();
  auto stream = device.make_stream();
  std::vector<std::byte> got(60000);
  device.wait(stream, pipeline.parameters_ready(0));
  device.copy_to_host(stream, got, run.parameter(0).data);
  stream.wait();
  CHECK(got == snapshot_of(pipeline).parameters[0]);
}

TEMPLATE_TEST_CASE("a steady step allocates nothing", "", host_tier, spillway::file_tier<>) {
  if constexpr (!test::allocations_are_counted) SKIP("a sanitizer has its own operator new");
  test::scratch const folder;
  auto tier = [&] {
    if constexpr (std::same_as<TestType, host_tier>) {
      return host_tier{64_MiB};
    } else {
      return spillway::file_tier<>{spillway::thread_engine<>{{.threads = 2}}, {.directory = folder.path()}};
    }
  }();
  auto options = cut(21504);
  options.micro_batches = 2;
  spillway::timeline trace(1U << 16U);
  options.trace = &trace;
  host_device device({.memory = 16_MiB});
  offload_pipeline<TestType> pipeline(test::training_layout(), device, std::move(tier), test::two_groups(2), {},
                                      options);
  test::trainer run(device, pipeline);
  run.initialise();
  auto const step = [&] {
    run.give_all(2, 0);
    run.give_all(2, 1);
    pipeline.step({.max_norm = 1});
  };
  for (int i = 0; i < 3; ++i) step();
  std::uint64_t const before = test::allocations();
  for (int i = 0; i < 5; ++i) step();
  CHECK(test::allocations() == before);
}
