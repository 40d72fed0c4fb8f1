// SPDX-License-Identifier: Apache-2.0
// Compiling is the test.
#include <spillway/core/transfer.hpp>
#include <spillway/core/transfer_concept.hpp>
#include <spillway/testing/transfer_archetypes.hpp>

namespace spillway {

using namespace testing;
using namespace testing::near_miss;

static_assert(Transfer<minimal_transfer>);
static_assert(Transfer<transfer>);
static_assert(Transfer<completed>);
static_assert(!Transfer<transfer_not_movable>);
static_assert(!Transfer<transfer_poll_returns_int>);
static_assert(!Transfer<transfer_throwing_poll>);
static_assert(!Transfer<transfer_without_wait>);
static_assert(!Transfer<transfer_status_returns_int>);
static_assert(!Transfer<transfer_mutable_status>);
static_assert(!Transfer<transfer_throwing_status>);

}  // namespace spillway
