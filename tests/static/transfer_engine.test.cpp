// SPDX-License-Identifier: Apache-2.0
// Compiling is the test.
#include <spillway/io/probed_engine.hpp>
#include <spillway/io/thread_engine.hpp>
#include <spillway/io/transfer_engine_concept.hpp>
#include <spillway/testing/transfer_engine_archetypes.hpp>
#include <spillway/testing/transfer_engine_conformance.hpp>
#include <spillway/tier/file_tier.hpp>

namespace spillway {

using namespace testing;
using namespace testing::near_miss;

static_assert(TransferEngine<minimal_engine>);
static_assert(TransferEngine<thread_engine<>>);
static_assert(TransferEngine<probed_engine<thread_engine<>>>);
static_assert(!TransferEngine<engine_not_movable>);
static_assert(!TransferEngine<engine_of_no_file_system>);
static_assert(!TransferEngine<engine_file_system_by_value>);
static_assert(!TransferEngine<engine_read_returns_count>);
static_assert(!TransferEngine<engine_write_returns_count>);
static_assert(!TransferEngine<engine_write_takes_mutable_bytes>);
static_assert(!TransferEngine<engine_without_drain>);
static_assert(!TransferEngine<engine_throwing_drain>);
static_assert(!TransferEngine<engine_report_is_text>);
static_assert(!TransferEngine<engine_mutable_report>);

// Every member compiles: these ask for no more than the concept.
template class v0::file_tier<minimal_engine>;
template std::vector<std::string> v0::testing::check_transfer_engine(minimal_engine, std::string const&);

}  // namespace spillway
