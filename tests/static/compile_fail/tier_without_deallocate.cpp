// SPDX-License-Identifier: Apache-2.0
// A tier that lacks a member is refused where it is handed over, and the message names the member.
// expect: tier.deallocate(r)
#include <spillway/testing/memory_tier_archetypes.hpp>
#include <spillway/tier/limiting_tier.hpp>

using refused = spillway::limiting_tier<spillway::testing::near_miss::tier_without_deallocate>;
