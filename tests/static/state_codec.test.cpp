// SPDX-License-Identifier: Apache-2.0
// Compiling is the test: what StateCodec asks for, no more and no less.
#include <spillway/optimizer/adamw_kernel.hpp>
#include <spillway/optimizer/float32.hpp>
#include <spillway/optimizer/host_updater.hpp>
#include <spillway/optimizer/stored.hpp>
#include <spillway/testing/optimizer_kernel_archetypes.hpp>
#include <spillway/testing/state_codec_archetypes.hpp>
#include <spillway/testing/state_codec_conformance.hpp>

#include "support/exact_split.hpp"

namespace spillway {

using namespace testing;
using namespace testing::near_miss;

static_assert(StateCodec<minimal_codec>);
static_assert(StateCodec<float32>);
static_assert(StateCodec<test::exact_split>);

static_assert(!StateCodec<codec_named_by_number>);
static_assert(!StateCodec<codec_type_by_name>);
static_assert(!StateCodec<codec_without_bytes_per_block>);
static_assert(!StateCodec<codec_without_needs_parameter>);
static_assert(!StateCodec<codec_that_loads_floats>);
static_assert(!StateCodec<codec_that_loads_mutable_bytes>);
static_assert(!StateCodec<codec_that_loads_without_the_parameter>);
static_assert(!StateCodec<codec_throwing_load>);
static_assert(!StateCodec<codec_without_store>);
static_assert(!StateCodec<codec_throwing_store>);

// A kernel takes exactly as many codecs as it has arrays.
template <class... Codecs>
concept Stores = requires {
  typename stored<adamw_kernel, rounding::nearest_even, Codecs...>;
};
static_assert(Stores<float32, minimal_codec, float32>);
static_assert(!Stores<float32, float32> && !Stores<float32, float32, float32, float32>);
static_assert(!Stores<float32, float32, codec_throwing_load>);

// The updater and the suite ask for no more than the concept.
template class v0::host_updater<stored<minimal_kernel, rounding::nearest_away, minimal_codec>>;
template std::vector<std::string> v0::testing::check_state_codec<minimal_codec>(codec_promise);

}  // namespace spillway
