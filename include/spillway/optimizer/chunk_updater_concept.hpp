// SPDX-License-Identifier: Apache-2.0
/// The policy seam "who updates a chunk". Requirements table: optimizer/README.md.
#pragma once

#include <spillway/core/bf16.hpp>
#include <spillway/device/device_concept.hpp>
#include <spillway/layout/chunk_plan.hpp>
#include <spillway/layout/stored_array.hpp>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace spillway::inline v0 {

/// One run of a chunk, ready to be updated. Addresses are where the updater works: host memory or device memory.
struct run_view {
  std::uint64_t offset = 0;  ///< elements from the start of the chunk's arrays, a multiple of block_elements
  std::uint64_t count = 0;   ///< true elements; what follows in the last block is padding, never written
  std::uint32_t group = 0;
  std::uint64_t step = 1;                  ///< of the tensor: counts from 1
  std::span<std::uint64_t const> shape{};  ///< of the whole tensor
  dtype gradient_type = dtype::bfloat16;   ///< float32 or bfloat16
  dtype parameter_type = dtype::bfloat16;  ///< float32 or bfloat16
  std::byte const* gradient = nullptr;     ///< [count], not yet unscaled; null: no gradient, the run stays as it is
  std::byte* parameter = nullptr;          ///< [count], written; read first when schema().needs_parameter
};

/// One chunk where it is updated.
struct chunk_view {
  std::span<std::byte* const> arrays{};  ///< start of each stored array
  std::span<run_view const> runs{};      ///< in order of their offsets
};

/// What holds for every chunk of one step.
struct update_scalars {
  double learning_rate_factor = 1;  ///< of the schedule
  float gradient_scale = 1;         ///< clip factor over the loss scale: gradients are multiplied by it once
};

/// What an updater keeps and needs.
struct updater_schema {
  std::string kernel{};                    ///< name of the update rule
  std::vector<stored_array> arrays{};      ///< the fp32 master first
  std::vector<granularity> by_group{};     ///< groups beyond the end are as the last one, by element when it is empty
  unsigned passes = 1;                     ///< over a chunk's state
  rounding rule = rounding::nearest_even;  ///< of the narrow parameter
  bool needs_parameter = false;            ///< the narrow parameter must be there before the update
  bool on_device = false;                  ///< the chunk must be in device memory and the stream the device's
  std::uint64_t groups = 0;                ///< group numbers that it has hyper-parameters for; 0: any
  bytes scratch_per_element{};             ///< that it allocates besides, for each element of the largest chunk
};

/// Updates chunks where their bytes are.
/// Semantics the compiler can't check: the update is a pure function of (state, gradient, hyper-parameters, step number); on the
/// host it is over on return, on a device it is enqueued on the stream; runs without gradient are not touched; initialise sets
/// the master to the given values, every other array to zero, the parameter to the rounded master.
template <class U>
concept ChunkUpdater = std::movable<U> &&
    requires(U& updater, U const& view, chunk_view const& chunk, update_scalars const& scalars,
             std::span<float const* const> masters, native_stream stream) {
  { view.schema() } -> std::same_as<updater_schema const&>;
  updater.update(chunk, scalars, stream);
  updater.initialise(chunk, masters, stream);  // masters[i]: [runs[i].count], where the updater works
};

}  // namespace spillway::inline v0
