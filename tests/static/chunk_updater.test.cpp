// SPDX-License-Identifier: Apache-2.0
// Compiling is the test: what ChunkUpdater asks for, no more and no less.
#include <spillway/optimizer/any_updater.hpp>
#include <spillway/optimizer/host_updater.hpp>
#include <spillway/testing/chunk_updater_archetypes.hpp>
#include <spillway/testing/chunk_updater_conformance.hpp>

namespace spillway {

using namespace testing;
using namespace testing::near_miss;

static_assert(ChunkUpdater<minimal_updater>);
static_assert(ChunkUpdater<host_updater<>>);
static_assert(ChunkUpdater<any_updater>);

static_assert(!ChunkUpdater<updater_not_movable>);
static_assert(!ChunkUpdater<updater_without_schema>);
static_assert(!ChunkUpdater<updater_that_copies_its_schema>);
static_assert(!ChunkUpdater<updater_schema_only_when_mutable>);
static_assert(!ChunkUpdater<updater_that_takes_no_stream>);
static_assert(!ChunkUpdater<updater_that_changes_the_chunk_view>);
static_assert(!ChunkUpdater<updater_that_changes_the_scalars>);
static_assert(!ChunkUpdater<updater_without_initialise>);
static_assert(!ChunkUpdater<updater_that_changes_masters>);

// The erased updater and the suite ask for no more than the concept.
template v0::any_updater::any_updater(minimal_updater&&);
template std::vector<std::string> v0::testing::check_chunk_updater(minimal_updater&);

}  // namespace spillway
