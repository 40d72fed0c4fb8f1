// SPDX-License-Identifier: Apache-2.0
// Compiling is the test: what OptimizerKernel, ElementKernel and TensorKernel ask for, no more and no less.
#include <spillway/optimizer/adamw_kernel.hpp>
#include <spillway/optimizer/host_updater.hpp>
#include <spillway/testing/optimizer_kernel_archetypes.hpp>
#include <spillway/testing/optimizer_kernel_conformance.hpp>

#include "support/user_kernels.hpp"

namespace spillway {

using namespace testing;
using namespace testing::near_miss;

static_assert(ElementKernel<minimal_kernel> && !TensorKernel<minimal_kernel>);
static_assert(TensorKernel<minimal_tensor_kernel> && !ElementKernel<minimal_tensor_kernel>);
static_assert(ElementKernel<adamw_kernel>);
static_assert(ElementKernel<test::momentum_kernel>);
static_assert(TensorKernel<test::normalised_momentum_kernel>);

static_assert(!OptimizerKernel<kernel_not_copyable>);
static_assert(!OptimizerKernel<kernel_without_defaults>);
static_assert(!OptimizerKernel<kernel_named_by_number>);
static_assert(!OptimizerKernel<kernel_without_arrays>);
static_assert(!OptimizerKernel<kernel_arrays_without_size>);
static_assert(!OptimizerKernel<kernel_arrays_by_number>);
static_assert(!OptimizerKernel<kernel_without_unit>);
static_assert(!OptimizerKernel<kernel_without_passes>);
static_assert(!OptimizerKernel<kernel_that_prepares_only_when_mutable>);
static_assert(!OptimizerKernel<kernel_that_prepares_other_constants>);
static_assert(OptimizerKernel<kernel_that_updates_f32_only> && !ElementKernel<kernel_that_updates_f32_only>);
static_assert(OptimizerKernel<kernel_that_updates_another_count> && !ElementKernel<kernel_that_updates_another_count>);
static_assert(OptimizerKernel<kernel_that_says_tensor> && !ElementKernel<kernel_that_says_tensor> &&
              !TensorKernel<kernel_that_says_tensor>);
static_assert(OptimizerKernel<tensor_kernel_that_ignores_shapes> && !TensorKernel<tensor_kernel_that_ignores_shapes>);
static_assert(OptimizerKernel<tensor_kernel_that_changes_gradients> &&
              !TensorKernel<tensor_kernel_that_changes_gradients>);
static_assert(OptimizerKernel<tensor_kernel_that_says_element> && !TensorKernel<tensor_kernel_that_says_element> &&
              !ElementKernel<tensor_kernel_that_says_element>);

// The updater and the suite ask for no more than the concept, the built-in rule for no more of its value type.
template class v0::host_updater<minimal_kernel>;
template class v0::host_updater<minimal_tensor_kernel>;
template std::vector<std::string> v0::testing::check_optimizer_kernel(minimal_kernel const&);
template std::vector<std::string> v0::testing::check_optimizer_kernel(minimal_tensor_kernel const&);
template void v0::adamw_kernel::update(adamw_kernel::constants const&, minimal_value, minimal_value (&)[3]) noexcept;

}  // namespace spillway
