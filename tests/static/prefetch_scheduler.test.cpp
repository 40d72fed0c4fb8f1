// SPDX-License-Identifier: Apache-2.0
// Compiling is the test: what PrefetchScheduler asks for, no more and no less.
#include <spillway/scheduler/sequential_scheduler.hpp>
#include <spillway/testing/prefetch_scheduler_archetypes.hpp>
#include <spillway/testing/prefetch_scheduler_conformance.hpp>

#include "support/user_schedulers.hpp"

namespace spillway {

using namespace testing;
using namespace testing::near_miss;

static_assert(PrefetchScheduler<minimal_scheduler>);
static_assert(PrefetchScheduler<sequential_scheduler>);
static_assert(PrefetchScheduler<test::reverse_scheduler>);
static_assert(PrefetchScheduler<test::shuffling_scheduler>);
static_assert(PrefetchScheduler<test::interleaved_scheduler>);

static_assert(!PrefetchScheduler<scheduler_not_movable>);
static_assert(!PrefetchScheduler<scheduler_that_returns_its_order>);
static_assert(!PrefetchScheduler<scheduler_that_orders_small_numbers>);
static_assert(!PrefetchScheduler<scheduler_that_changes_the_outline>);
static_assert(!PrefetchScheduler<scheduler_without_read_ahead>);
static_assert(!PrefetchScheduler<scheduler_read_ahead_only_when_mutable>);
static_assert(!PrefetchScheduler<scheduler_that_does_not_observe>);
static_assert(!PrefetchScheduler<scheduler_that_changes_the_times>);

// The suite asks for no more than the concept.
template std::vector<std::string> v0::testing::check_prefetch_scheduler(minimal_scheduler&);

}  // namespace spillway
