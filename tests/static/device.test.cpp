// SPDX-License-Identifier: Apache-2.0
// Compiling is the test: what Device asks for, no more and no less.
#include <spillway/device/host_device.hpp>
#include <spillway/testing/device_archetypes.hpp>
#include <spillway/testing/device_conformance.hpp>

namespace t = spillway::testing;
namespace miss = spillway::testing::near_miss;
using spillway::Device;

static_assert(Device<t::minimal_device>);
static_assert(Device<spillway::host_device>);

static_assert(!Device<miss::device_that_cannot_move>);
static_assert(!Device<miss::device_whose_stream_cannot_move>);
static_assert(!Device<miss::device_whose_stream_cannot_wait>);
static_assert(!Device<miss::device_whose_event_cannot_be_copied>);
static_assert(!Device<miss::device_whose_event_needs_a_stream>);
static_assert(!Device<miss::device_whose_event_cannot_wait>);
static_assert(!Device<miss::device_whose_event_waits_only_when_mutable>);
static_assert(!Device<miss::device_whose_event_has_no_done>);
static_assert(!Device<miss::device_that_allocates_a_pointer>);
static_assert(!Device<miss::device_that_cannot_deallocate>);
static_assert(!Device<miss::device_whose_deallocate_may_throw>);
static_assert(!Device<miss::device_without_streams>);
static_assert(!Device<miss::device_that_copies_only_to_the_host>);
static_assert(!Device<miss::device_that_copies_only_to_the_device>);
static_assert(!Device<miss::device_that_takes_only_function_pointers>);
static_assert(!Device<miss::device_that_records_nothing>);
static_assert(!Device<miss::device_whose_streams_cannot_wait_for_events>);
static_assert(!Device<miss::device_whose_capacity_is_a_number>);
static_assert(!Device<miss::device_whose_capacity_needs_a_mutable_device>);
static_assert(!Device<miss::device_that_does_not_count_used>);
static_assert(!Device<miss::device_that_does_not_count_the_peak>);
static_assert(!Device<miss::device_without_a_name>);

// The suite asks for no more than the concept.
template std::vector<std::string> spillway::testing::check_device(t::minimal_device&);
