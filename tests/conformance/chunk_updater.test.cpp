// SPDX-License-Identifier: Apache-2.0
#include <spillway/optimizer/any_updater.hpp>
#include <spillway/optimizer/host_updater.hpp>
#include <spillway/testing/chunk_updater_conformance.hpp>

#include <algorithm>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "support/catch.hpp"
#include "support/exact_split.hpp"
#include "support/user_kernels.hpp"

using spillway::adamw_kernel;
using spillway::chunk_view;
using spillway::float32;
using spillway::host_updater;
using spillway::native_stream;
using spillway::rounding;
using spillway::run_view;
using spillway::stored;
using spillway::thread_pool;
using spillway::update_scalars;
using spillway::testing::check_chunk_updater;

namespace {
std::vector<std::string> const none;
using nearest_away = stored<adamw_kernel, rounding::nearest_away, float32, float32, float32>;
using split_master = stored<adamw_kernel, rounding::nearest_away, test::exact_split, float32, float32>;
}  // namespace

TEMPLATE_TEST_CASE("chunk updater conformance: host_updater of", "", adamw_kernel, test::momentum_kernel,
                   test::normalised_momentum_kernel, nearest_away, split_master) {
  for (unsigned const threads : {1U, 3U}) {
    host_updater<TestType> updater{TestType{}, std::make_shared<thread_pool>(threads)};
    CHECK(check_chunk_updater(updater) == none);
  }
}

TEST_CASE("chunk updater conformance: any_updater") {
  spillway::any_updater updater{host_updater<>{}};
  CHECK(check_chunk_updater(updater) == none);
}

namespace {
/// Updaters that break one law each: the suite must see it.
struct base : host_updater<> {
  base() : host_updater<>(adamw_kernel{}, std::make_shared<thread_pool>(1)) {}
  template <class Change>
  void update_changed(chunk_view const& chunk, update_scalars const& scalars, Change change) {
    std::vector<run_view> runs(chunk.runs.begin(), chunk.runs.end());
    for (run_view& r : runs) change(r);
    host_updater<>::update({chunk.arrays, runs}, scalars);
  }
};
struct updater_that_writes_padding : base {
  void update(chunk_view const& chunk, update_scalars const& scalars, native_stream = {}) {
    base::update(chunk, scalars);
    for (run_view const& r : chunk.runs) {
      if (r.count % 1024 != 0) std::memset(chunk.arrays[1] + (r.offset + r.count) * 4, 0, 4);
    }
  }
};
struct updater_that_reuses_gradients : base {
  std::vector<float> last = std::vector<float>(50000, 0.5F);
  void update(chunk_view const& chunk, update_scalars const& scalars, native_stream = {}) {
    update_changed(chunk, scalars, [this](run_view& r) {
      if (r.gradient != nullptr) return;
      r.gradient = reinterpret_cast<std::byte const*>(last.data());
      r.gradient_type = spillway::dtype::float32;
    });
  }
};
struct updater_that_counts_steps_by_calls : base {
  std::uint64_t calls = 0;
  void update(chunk_view const& chunk, update_scalars const& scalars, native_stream = {}) {
    ++calls;
    update_changed(chunk, scalars, [this](run_view& r) { r.step = calls; });
  }
};
struct updater_that_ignores_the_scale : base {
  void update(chunk_view const& chunk, update_scalars scalars, native_stream = {}) {
    scalars.gradient_scale = 1;
    base::update(chunk, scalars);
  }
};
struct updater_that_rounds_the_other_way : base {
  spillway::updater_schema other = host_updater<>::schema();
  updater_that_rounds_the_other_way() { other.rule = rounding::nearest_away; }
  [[nodiscard]] spillway::updater_schema const& schema() const noexcept { return other; }
};
struct updater_that_starts_with_moments : base {
  void initialise(chunk_view const& chunk, std::span<float const* const> masters, native_stream = {}) {
    base::initialise(chunk, masters);
    for (run_view const& r : chunk.runs) std::memcpy(chunk.arrays[1] + r.offset * 4, chunk.arrays[0] + r.offset * 4, 4);
  }
};

template <class Broken>
[[nodiscard]] bool found_in(std::string const& law) {
  Broken updater;
  auto const broken = check_chunk_updater(updater);
  return std::any_of(broken.begin(), broken.end(), [&](auto const& text) { return text.rfind(law, 0) == 0; });
}
}  // namespace

TEST_CASE("chunk updater conformance: the suite finds broken laws") {
  CHECK(found_in<updater_that_writes_padding>("update: something was written"));
  CHECK(found_in<updater_that_reuses_gradients>("runs without gradient: a run"));
  CHECK(found_in<updater_that_counts_steps_by_calls>("cuts"));
  CHECK(found_in<updater_that_ignores_the_scale>("gradients: a scaled"));
  CHECK(found_in<updater_that_rounds_the_other_way>("initialise: a parameter"));
  CHECK(found_in<updater_that_starts_with_moments>("initialise: array exp_avg"));
}
