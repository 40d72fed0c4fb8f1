// SPDX-License-Identifier: Apache-2.0
// Compiling is the test: what Communicator asks for, no more and no less.
#include <spillway/comm/single_process.hpp>
#include <spillway/testing/communicator_archetypes.hpp>
#include <spillway/testing/communicator_conformance.hpp>

#include "support/thread_communicator.hpp"

namespace spillway {

using namespace testing;
using namespace testing::near_miss;

static_assert(Communicator<minimal_communicator>);
static_assert(Communicator<single_process>);
static_assert(Communicator<test::thread_communicator>);

static_assert(!Communicator<communicator_not_movable>);
static_assert(!Communicator<communicator_rank_only_when_mutable>);
static_assert(!Communicator<communicator_without_rank>);
static_assert(!Communicator<communicator_without_world>);
static_assert(!Communicator<communicator_that_sums_doubles>);
static_assert(!Communicator<communicator_that_cannot_change_the_sums>);
static_assert(!Communicator<communicator_that_broadcasts_from_nobody>);
static_assert(!Communicator<communicator_that_broadcasts_text>);
static_assert(!Communicator<communicator_without_barrier>);

// The suite asks for no more than the concept.
template std::vector<std::string> v0::testing::check_communicator(minimal_communicator&);

}  // namespace spillway
