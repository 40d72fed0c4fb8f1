// SPDX-License-Identifier: Apache-2.0
// What a pipeline is made of: tokens, homes, gradients, the plan.
#include <spillway/device/host_device.hpp>
#include <spillway/optimizer/host_updater.hpp>
#include <spillway/pipeline/chunk_homes.hpp>
#include <spillway/pipeline/detail/any_transfer.hpp>
#include <spillway/pipeline/gradient_store.hpp>
#include <spillway/pipeline/memory_plan.hpp>
#include <spillway/pipeline/staging_slots.hpp>
#include <spillway/tier/counting_tier.hpp>
#include <spillway/tier/host_tier.hpp>

#include <memory>
#include <stdexcept>
#include <string>

#include "support/catch.hpp"
#include "support/training_run.hpp"
#include "support/user_kernels.hpp"

using namespace spillway::literals;
using spillway::bytes;
using spillway::errc;
using spillway::host_device;
using spillway::host_tier;
using spillway::detail::any_transfer;

namespace {
/// A token that tells what happens to it.
struct watched {
  struct record {
    bool done = false;
    int waits = 0;
    int destroyed = 0;
  };
  record* to;
  explicit watched(record& r) noexcept : to(&r) {}
  watched(watched&& other) noexcept : to(std::exchange(other.to, nullptr)) {}
  watched& operator=(watched&&) noexcept = default;
  ~watched() {
    if (to != nullptr) ++to->destroyed;
  }
  [[nodiscard]] bool poll() const noexcept { return to == nullptr || to->done; }
  void wait() const {
    ++to->waits;
    if (to->done) throw std::runtime_error("failed");
    to->done = true;
  }
  [[nodiscard]] std::error_code status() const noexcept {
    return to->waits > 1 ? make_error_code(errc::busy) : std::error_code{};
  }
};
}  // namespace

TEST_CASE("any_transfer: is its token, and an empty one is done") {
  any_transfer empty;
  CHECK(empty.poll());
  CHECK(!empty.status());
  empty.wait();
  watched::record record;
  {
    any_transfer token{watched{record}};
    CHECK(!token.poll());
    any_transfer moved = std::move(token);
    CHECK(token.poll());
    CHECK(!moved.poll());
    moved.wait();
    CHECK(moved.poll());
    CHECK(!moved.status());
    CHECK_THROWS_AS(moved.wait(), std::runtime_error);
    CHECK(moved.status() == errc::busy);
    CHECK(record.destroyed == 0);
    watched::record other;
    moved = any_transfer{watched{other}};
    CHECK(record.destroyed == 1);
    moved = any_transfer{};
    CHECK(other.destroyed == 1);
  }
  CHECK(record.destroyed == 1);
  CHECK(record.waits == 2);
}

TEST_CASE(
    "chunk_homes: chunks of one tier lie behind each other, and each array comes back from where it was written") {
  auto const layout = test::training_layout();
  spillway::chunk_plan const chunks(layout, 21504);
  std::vector<spillway::stored_array> const arrays{{"master", "x", spillway::dtype::u16, 2048},
                                                   {"m", "y", spillway::dtype::u8, 1032}};
  auto const counts = std::make_shared<spillway::tier_counts>();
  spillway::tier_stack stack{spillway::share{0.25, host_tier{8_MiB}},
                             spillway::share{0.75, spillway::counting_tier{host_tier{8_MiB}, counts}}};
  auto const sizes = state_bytes(stack, std::span<spillway::stored_array const>{arrays}, chunks);
  {
    spillway::chunk_homes<decltype(stack)> homes(std::move(stack), arrays, chunks);
    CHECK(homes.held_by(0) == sizes[0]);
    CHECK(homes.held_by(1) == sizes[1]);
    CHECK(counts->allocated == sizes[1].count);
    auto const content = [](std::size_t c, std::size_t a, std::size_t n) {
      return std::vector<std::byte>(n, static_cast<std::byte>(c * 2 + a + 1));
    };
    std::size_t in_place = 0;
    for (std::size_t c = 0; c < chunks.size(); ++c) {
      for (std::size_t a = 0; a < 2; ++a) {
        auto const wanted = content(c, a, array_bytes(arrays[a], chunks[c].blocks.size()).count);
        if (homes.in_place(c)) {
          CHECK(homes.tier_of(c) == 0);
          std::copy(wanted.begin(), wanted.end(), homes.data(c, a));
        } else {
          homes.write(c, a, wanted).wait();
        }
      }
      in_place += homes.in_place(c) ? 1U : 0U;
    }
    CHECK(in_place == chunks.size() / 4);
    for (std::size_t c = 0; c < chunks.size(); ++c) {
      for (std::size_t a = 0; a < 2; ++a) {
        auto const wanted = content(c, a, array_bytes(arrays[a], chunks[c].blocks.size()).count);
        std::vector<std::byte> got(wanted.size());
        if (homes.in_place(c)) {
          std::copy_n(homes.data(c, a), got.size(), got.begin());
        } else {
          homes.read(c, a, got).wait();
        }
        CHECK(got == wanted);
      }
    }
  }
  CHECK(counts->allocated == 0);
}

TEST_CASE("gradient_store: settling twice adds nothing twice") {
  host_device device({.memory = 1_MiB});
  spillway::parameter_layout const layout{{{"a", {100}}}};
  spillway::gradient_store store(layout, device, 3);
  auto const block = device.allocate(bytes{200});
  auto stream = device.make_stream();
  std::vector<spillway::bf16> const ones(100, spillway::narrow(1.0F));
  device.copy_to_device(stream, block.data, std::as_bytes(std::span{ones}));
  auto const ready = device.record(stream);
  store.accumulate(0, block.data, ready);
  store.settle();
  store.settle();
  CHECK(store.type(0) == spillway::dtype::bfloat16);
  store.accumulate(0, block.data, ready);
  store.settle();
  store.settle();
  CHECK(store.type(0) == spillway::dtype::float32);
  CHECK(*reinterpret_cast<float const*>(store.data(0)) == 2);
  store.accumulate(0, block.data, ready);
  store.settle();
  CHECK(reinterpret_cast<float const*>(store.data(0))[99] == 3);
  CHECK(store.clear() == bytes{600});
  CHECK(!store.any());
  store.accumulate(0, block.data, ready);
  store.accumulate(0, block.data, ready);
  store.settle();
  CHECK(*reinterpret_cast<float const*>(store.data(0)) == 2);
  CHECK(store.held() == spillway::gradient_store_bytes(layout, 3));
  device.deallocate(block);
}

TEST_CASE("gradient_store: its sum has the same bits for any number of threads") {
  host_device device({.memory = 4_MiB});
  spillway::parameter_layout const layout{
      {{"a", {300000}}, {"absent", {5000}}, {"b", {70001}, spillway::dtype::float32}}};
  spillway::gradient_store store(layout, device, 1);
  auto stream = device.make_stream();
  std::vector<spillway::device_block> blocks;
  std::vector<std::vector<std::byte>> host;
  for (std::size_t const t : {std::size_t{0}, std::size_t{2}}) {
    std::size_t const width = t == 0 ? 2 : 4;
    host.emplace_back(layout.elements(t) * width);
    for (std::uint64_t e = 0; e < layout.elements(t); ++e) {
      float const v = test::recorded(t, e);
      spillway::bf16 const half = spillway::narrow(v);
      std::memcpy(&host.back()[e * width], t == 0 ? static_cast<void const*>(&half) : &v, width);
    }
    blocks.push_back(device.allocate(bytes{host.back().size()}));
    device.copy_to_device(stream, blocks.back().data, host.back());
    store.accumulate(t, blocks.back().data, device.record(stream));
  }
  store.settle();
  spillway::thread_pool one(1);
  auto const wanted = store.sum(one);
  CHECK(wanted.squares.value() > 0);
  for (unsigned const threads : {2U, 3U, 8U}) {
    spillway::thread_pool pool(threads);
    for (int round = 0; round < 5; ++round) CHECK(store.sum(pool).squares.value() == wanted.squares.value());
  }
  for (auto const& block : blocks) device.deallocate(block);
}

TEST_CASE("memory_plan: refuses by name what is short, by how much and why, and nothing else") {
  spillway::memory_plan plan;
  plan.add(spillway::budget::device, "weights", 600_KiB);
  plan.add(spillway::budget::device, "activations", 600_KiB);
  plan.add(spillway::budget::host, "staging slots", 1_MiB);
  plan.add(spillway::budget::file, "state", 10_MiB);
  CHECK_NOTHROW(plan.require());  // no limits
  CHECK(plan.total(spillway::budget::device) == 1200_KiB);
  plan.limit(spillway::budget::device, 1_MiB);
  plan.limit(spillway::budget::host, 1_MiB);  // just enough
  plan.limit(spillway::budget::file, 4_MiB);
  try {
    plan.require();
    FAIL("no error");
  } catch (spillway::error const& failed) {
    CHECK(failed.code() == errc::capacity_exceeded);
    CHECK(failed.about().wanted == 1200_KiB);
    CHECK(failed.about().got == 1_MiB);
    std::string const text = failed.what();
    for (char const* part :
         {"device budget of 1.00 MiB is short by 176.0 KiB", "weights 600.0 KiB", "activations 600.0 KiB",
          "file budget of 4.00 MiB is short by 6.00 MiB", "state 10.0 MiB"}) {
      CAPTURE(text, part);
      CHECK(text.find(part) != std::string::npos);
    }
    CHECK(text.find("host") == std::string::npos);
  }
}

TEST_CASE("memory_plan: counts what a pipeline needs besides its tiers, codecs and whole tensors included") {
  auto const layout = test::training_layout();
  auto const items = [&](spillway::updater_schema const& schema, unsigned micro_batches) {
    spillway::memory_plan plan;
    spillway::chunk_plan const chunks(layout, 4096, schema.by_group);
    add_pipeline(plan, layout, schema, chunks, {.chunk_elements = 4096, .slots = 3, .micro_batches = micro_batches});
    return plan.items();
  };
  auto const plain = items(spillway::host_updater<>{}.schema(), 1);
  REQUIRE(plain.size() == 2);
  // A slot: three arrays of 4 blocks at staggered starts, and 4 B an element of narrow parameters.
  CHECK(plain[0].amount == 3 * bytes{3 * 4 * 4096 + 3 * 4096 + 4 * 4096});
  CHECK(plain[1].amount.count >= layout.parameter_bytes().count);
  CHECK(plain[1].amount.count < layout.parameter_bytes().count + 64 * layout.size());
  CHECK(items(spillway::host_updater<>{}.schema(), 2)[1].amount.count >=
        layout.parameter_bytes().count + 4 * layout.elements());
  auto const whole = items(spillway::host_updater<test::normalised_momentum_kernel>{}.schema(), 1);
  REQUIRE(whole.size() == 3);
  CHECK(whole[2].what == "updater scratch");
  CHECK(whole[2].amount == bytes{256 * 1024 * 4});  // the largest tensor has 256 blocks
  spillway::updater_schema mirrored = spillway::host_updater<>{}.schema();
  mirrored.needs_parameter = true;
  CHECK(items(mirrored, 1).back().what == "parameter mirror");
}

TEST_CASE("staging_slots: arrays and parameters of each slot lie apart, in one buffer") {
  spillway::host_updater<> const updater;
  spillway::chunk_plan const chunks(test::training_layout(), 21504);
  spillway::staging_slots<host_device> slots(3, updater.schema(), chunks);
  CHECK(slots.size() == 3);
  CHECK(slots.memory().size() == 3 * slot_size(updater.schema(), chunks));
  for (std::size_t i = 0; i < 3; ++i) {
    CHECK(reinterpret_cast<std::uintptr_t>(slots[i].state) % 4096 == 0);
    CHECK(slots[i].parameters >= slots[i].state + slot_bytes(updater.schema().arrays, chunks.largest()).count);
    std::byte const* const end = slots[i].parameters + chunks.largest() * 4096;
    CHECK(end <= (i + 1 < 3 ? slots[i + 1].state : slots.memory().data() + slots.memory().size().count));
  }
}
