// SPDX-License-Identifier: Apache-2.0
/// How host code gets a GPU policy: an erased type, made in one .cu file.
#pragma once

#include <spillway/optimizer/adamw_kernel.hpp>
#include <spillway/optimizer/any_updater.hpp>

#include <vector>

[[nodiscard]] spillway::any_updater make_cuda_updater(spillway::adamw_kernel kernel);
[[nodiscard]] spillway::any_updater make_cuda_updater(std::vector<spillway::adamw_kernel> by_group);
