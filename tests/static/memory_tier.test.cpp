// SPDX-License-Identifier: Apache-2.0
// Compiling is the test.
#include <spillway/testing/memory_tier_archetypes.hpp>
#include <spillway/testing/memory_tier_conformance.hpp>
#include <spillway/tier/counting_tier.hpp>
#include <spillway/tier/file_tier.hpp>
#include <spillway/tier/host_tier.hpp>
#include <spillway/tier/limiting_tier.hpp>
#include <spillway/tier/memory_tier_concept.hpp>
#include <spillway/tier/tier_stack.hpp>

#include "support/transforming_tier.hpp"

namespace spillway {

using namespace testing;
using namespace testing::near_miss;

static_assert(MemoryTier<minimal_tier> && !HostAddressableTier<minimal_tier>);
static_assert(HostAddressableTier<minimal_host_tier>);
static_assert(!MemoryTier<tier_not_movable>);
static_assert(!MemoryTier<tier_without_traits>);
static_assert(!MemoryTier<tier_traits_not_constant>);
static_assert(!MemoryTier<tier_allocate_returns_id>);
static_assert(!MemoryTier<tier_read_returns_count>);
static_assert(!MemoryTier<tier_write_returns_count>);
static_assert(!MemoryTier<tier_write_takes_mutable_bytes>);
static_assert(!MemoryTier<tier_flush_returns_nothing>);
static_assert(!MemoryTier<tier_without_deallocate>);
static_assert(!MemoryTier<tier_throwing_deallocate>);
static_assert(!MemoryTier<tier_capacity_is_a_number>);
static_assert(!MemoryTier<tier_mutable_capacity>);
static_assert(!MemoryTier<tier_throwing_capacity>);
static_assert(MemoryTier<tier_claims_to_be_addressable> && !HostAddressableTier<tier_claims_to_be_addressable>);
static_assert(MemoryTier<tier_data_without_claim> && !HostAddressableTier<tier_data_without_claim>);
static_assert(MemoryTier<tier_data_is_void> && !HostAddressableTier<tier_data_is_void>);
static_assert(MemoryTier<tier_throwing_data> && !HostAddressableTier<tier_throwing_data>);

// The adaptors are tiers over anything that is one, and are addressable exactly when they promise it.
static_assert(MemoryTier<limiting_tier<minimal_tier>> && !HostAddressableTier<limiting_tier<minimal_tier>>);
static_assert(HostAddressableTier<limiting_tier<host_tier>>);
static_assert(MemoryTier<counting_tier<minimal_tier>>);
static_assert(MemoryTier<counting_tier<host_tier>> && !counting_tier<host_tier>::traits.host_addressable);
static_assert(MemoryTier<limiting_tier<counting_tier<file_tier<>>>>);
static_assert(MemoryTier<test::transforming_tier<host_tier>>);
static_assert(!test::transforming_tier<host_tier>::traits.verbatim);
static_assert(!MemoryTier<tier_stack<host_tier>>);

// Every member compiles: these ask for no more than the concept.
template class v0::limiting_tier<minimal_tier>;
template class v0::counting_tier<minimal_tier>;
template class v0::tier_stack<minimal_tier, minimal_host_tier>;
template std::vector<std::string> v0::testing::check_memory_tier(minimal_tier&);
template std::vector<std::string> v0::testing::check_memory_tier(minimal_host_tier&);

}  // namespace spillway
