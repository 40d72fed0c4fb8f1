// SPDX-License-Identifier: Apache-2.0
/// How host code gets a GPU policy: an erased type, made in one .cu file.
#pragma once

#include <spillway/optimizer/adamw_kernel.hpp>
#include <spillway/optimizer/any_updater.hpp>

#include <span>
#include <vector>

[[nodiscard]] spillway::any_updater make_cuda_updater(spillway::adamw_kernel kernel);
[[nodiscard]] spillway::any_updater make_cuda_updater(std::vector<spillway::adamw_kernel> by_group);

/// The same per-element functions that the GPU's threads run, called one element after the other by the host.
void initialise_as_a_gpu_would(spillway::chunk_view const& chunk, std::span<float const* const> masters);
void update_as_a_gpu_would(spillway::adamw_kernel const& kernel, spillway::chunk_view const& chunk,
                           spillway::update_scalars const& scalars);
