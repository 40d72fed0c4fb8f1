// SPDX-License-Identifier: Apache-2.0
// Compiling is the test: the pipeline asks for no more of its policies than their concepts.
#include <spillway/durable/spilled_state_concept.hpp>
#include <spillway/pipeline/offload_pipeline.hpp>
#include <spillway/testing/chunk_updater_archetypes.hpp>
#include <spillway/testing/communicator_archetypes.hpp>
#include <spillway/testing/device_archetypes.hpp>
#include <spillway/testing/memory_tier_archetypes.hpp>
#include <spillway/testing/prefetch_scheduler_archetypes.hpp>
#include <spillway/tier/device_tier.hpp>

namespace spillway {

using namespace testing;

template <class Tiers>
using minimal_pipeline = offload_pipeline<Tiers, minimal_updater, minimal_scheduler, minimal_device>;

static_assert(SpilledState<minimal_pipeline<minimal_tier>>);
static_assert(!std::movable<minimal_pipeline<minimal_tier>>);
static_assert(TierOrStack<minimal_tier> && TierOrStack<tier_stack<minimal_host_tier, minimal_tier>> &&
              !TierOrStack<int>);

template class v0::offload_pipeline<minimal_tier, minimal_updater, minimal_scheduler, minimal_device>;
template class v0::offload_pipeline<minimal_host_tier, minimal_updater, minimal_scheduler, minimal_device>;
template class v0::offload_pipeline<tier_stack<minimal_host_tier, minimal_tier>, minimal_updater, minimal_scheduler,
                                    minimal_device>;
template class v0::device_tier<minimal_device>;
template class v0::offload_pipeline<device_tier<minimal_device>, minimal_updater, minimal_scheduler, minimal_device>;

// Members that are templates of their own.
template <class Pipeline>
void use(Pipeline& pipeline, minimal_communicator& ranks) {
  pipeline.initialise([](std::size_t, std::uint64_t, std::span<float>) {});
  static_cast<void>(pipeline.step({}, ranks));
  pipeline.export_chunk(0, detail::any_array_sink{});
  pipeline.export_parameter(0, detail::any_sink{});
  pipeline.import_chunk(0, detail::any_array_source{});
  pipeline.import_parameter(0, detail::any_source{});
  pipeline.visit_counters(detail::any_visitor{});
}
template void use(minimal_pipeline<minimal_tier>&, minimal_communicator&);
template void use(minimal_pipeline<tier_stack<minimal_host_tier, minimal_tier>>&, minimal_communicator&);

}  // namespace spillway
