// SPDX-License-Identifier: Apache-2.0
#include "train_gpt/schedule.hpp"

#include <spillway/core/error.hpp>

#include <cmath>
#include <cstdint>
#include <limits>

#include "support/catch.hpp"

namespace {

using train_gpt::cosine_schedule;

bool refused(cosine_schedule const& schedule) {
  try {
    schedule.validate();
  } catch (spillway::error const& e) {
    return e.code() == make_error_code(spillway::errc::invalid_option);
  }
  return false;
}

}  // namespace

TEST_CASE("schedule: the warm-up is linear and ends at the peak") {
  cosine_schedule const schedule{.peak = 0.5F, .floor = 0.0F, .warmup_steps = 4, .total_steps = 10};
  CHECK(schedule.at(1) == 0.125F);
  CHECK(schedule.at(2) == 0.25F);
  CHECK(schedule.at(3) == 0.375F);
  CHECK(schedule.at(4) == 0.5F);
  CHECK(schedule.at(5) < 0.5F);
}

TEST_CASE("schedule: after the warm-up it is a cosine to the floor") {
  cosine_schedule const schedule{.peak = 3e-3F, .floor = 2e-4F, .warmup_steps = 100, .total_steps = 1100};
  for (std::uint64_t step = 101; step <= 1100; ++step) {
    double const progress = static_cast<double>(step - 100) / 1000;
    double const wanted = 2e-4 + (3e-3 - 2e-4) * 0.5 * (1 + std::cos(3.14159265358979323846 * progress));
    CHECK(std::fabs(static_cast<double>(schedule.at(step)) - wanted) < 1e-9);
    CHECK(schedule.at(step) <= schedule.at(step - 1));
  }
  CHECK(schedule.at(1100) == 2e-4F);
  CHECK(schedule.at(5000) == 2e-4F);
}

TEST_CASE("schedule: its bits are fixed, whatever flags this file is compiled with") {
  cosine_schedule const schedule{.peak = 1e-3F, .floor = 1e-4F, .warmup_steps = 7, .total_steps = 1000};
  CHECK(schedule.at(3) == 0x1.c163c6p-12F);
  CHECK(schedule.at(8) == 0x1.0624b6p-10F);
  CHECK(schedule.at(300) == 0x1.adf9fcp-11F);
  CHECK(schedule.at(777) == 0x1.b30042p-13F);
}

TEST_CASE("schedule: without a warm-up it starts below the peak, and a run of warm-up only ends at it") {
  cosine_schedule const none{.peak = 1.0F, .floor = 0.0F, .warmup_steps = 0, .total_steps = 2};
  CHECK(std::fabs(none.at(1) - 0.5F) < 1e-6F);
  CHECK(none.at(2) == 0.0F);
  cosine_schedule const only{.peak = 1.0F, .floor = 0.0F, .warmup_steps = 2, .total_steps = 2};
  CHECK(only.at(1) == 0.5F);
  CHECK(only.at(2) == 1.0F);
}

TEST_CASE("schedule: values that make no schedule are refused") {
  CHECK_FALSE(refused({}));
  CHECK(refused({.peak = 0}));
  CHECK(refused({.peak = std::numeric_limits<float>::quiet_NaN()}));
  CHECK(refused({.peak = std::numeric_limits<float>::infinity()}));
  CHECK(refused({.peak = 1e-4F, .floor = 1e-3F}));
  CHECK(refused({.floor = -1e-4F}));
  CHECK(refused({.floor = std::numeric_limits<float>::quiet_NaN()}));
  CHECK(refused({.warmup_steps = 11, .total_steps = 10}));
}
