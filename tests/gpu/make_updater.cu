// SPDX-License-Identifier: Apache-2.0
#include <spillway/cuda/updater.cuh>

#include "gpu/make_updater.hpp"

spillway::any_updater make_cuda_updater(spillway::adamw_kernel kernel) {
  return spillway::any_updater{spillway::cuda::updater<spillway::adamw_kernel>{kernel}};
}

spillway::any_updater make_cuda_updater(std::vector<spillway::adamw_kernel> by_group) {
  return spillway::any_updater{spillway::cuda::updater<spillway::adamw_kernel>{std::move(by_group)}};
}
