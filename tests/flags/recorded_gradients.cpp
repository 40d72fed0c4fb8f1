// SPDX-License-Identifier: Apache-2.0
// Trains on recorded gradients and prints a digest of all state, which must not depend on the compiler's flags.
#include <spillway/optimizer/stored.hpp>
#include <spillway/tier/counting_tier.hpp>
#include <spillway/tier/host_tier.hpp>

#include <cstdio>
#include <memory>

#include "support/exact_split.hpp"
#include "support/train.hpp"
#include "support/user_kernels.hpp"

int main() {
  using namespace spillway;
  try {
    auto options = test::cut(21504);
    options.pool = std::make_shared<thread_pool>(3);  // threads of their own: -ffast-math gives them flush-to-zero
    using split = stored<adamw_kernel, rounding::nearest_away, test::exact_split, float32, float32>;
    // Through slots, not in place, so that everything that moves a chunk is compiled with these flags too.
    auto const tier = [] { return counting_tier{host_tier{bytes{64U << 20U}}}; };
    std::printf("adamw %s split %s momentum %s normalised %s\n",
                test::train(tier(), options, test::two_groups(3), {}, 10).digest().c_str(),
                test::train(tier(), options, host_updater<split>{}).digest().c_str(),
                test::train(tier(), options, host_updater<test::momentum_kernel>{}).digest().c_str(),
                test::train(tier(), options, host_updater<test::normalised_momentum_kernel>{}).digest().c_str());
    return 0;
  } catch (error const& refused) {
    if (refused.code() != errc::numerics_altered) throw;
    std::fprintf(stderr, "%s\n", refused.what());
    return 3;
  }
}
