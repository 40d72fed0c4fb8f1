// SPDX-License-Identifier: Apache-2.0
// Compiling is the test: saving and restoring ask for no more than the concepts.
#include <spillway/checkpoint/checkpoint_store.hpp>
#include <spillway/testing/file_system_archetypes.hpp>
#include <spillway/testing/spilled_state_archetypes.hpp>
#include <spillway/testing/training_state_archetypes.hpp>

namespace {
using namespace spillway;
using namespace spillway::testing;

static_assert(SpilledState<minimal_spilled_state>);
static_assert(!SpilledState<near_miss::spilled_layout_by_value>);
static_assert(!SpilledState<near_miss::spilled_chunks_by_value>);
static_assert(!SpilledState<near_miss::spilled_chunks_mutable>);
static_assert(!SpilledState<near_miss::spilled_arrays_writable>);
static_assert(!SpilledState<near_miss::spilled_rule_is_number>);
static_assert(!SpilledState<near_miss::spilled_export_of_one_array>);
static_assert(!SpilledState<near_miss::spilled_without_export_parameter>);
static_assert(!SpilledState<near_miss::spilled_without_begin>);
static_assert(!SpilledState<near_miss::spilled_without_import_chunk>);
static_assert(!SpilledState<near_miss::spilled_without_import_parameter>);
static_assert(!SpilledState<near_miss::spilled_without_finish>);
static_assert(!SpilledState<near_miss::spilled_without_counters>);

struct run {
  minimal_spilled_state& spill;
  visited_state inner{};
  template <class V>
  void visit_state(V& visit) {
    visit("spill", spill);
    visit("inner", inner);
  }
};
static_assert(TrainingState<run>);
}  // namespace

namespace spillway {
template class checkpoint_store<minimal_file_system>;
template saved_checkpoint checkpoint_store<minimal_file_system>::save(std::uint64_t, run&);
template restored_checkpoint checkpoint_store<minimal_file_system>::restore(run&, std::optional<std::uint64_t>);
template restored_checkpoint restore_path(std::string const&, run&, minimal_file_system);
template state_digest digest_of(run&);
template std::vector<checkpoint_entry> list_checkpoints(std::string const&, minimal_file_system);
}  // namespace spillway
