// SPDX-License-Identifier: Apache-2.0
/// The host API in one include. Apart stay: back ends (uring, cuda), signals, testing.
#pragma once

#include <spillway/checkpoint/checkpoint_store.hpp>
#include <spillway/comm/single_process.hpp>
#include <spillway/core/bf16.hpp>
#include <spillway/core/bytes.hpp>
#include <spillway/core/counter_rng.hpp>
#include <spillway/core/digest.hpp>
#include <spillway/core/dtype.hpp>
#include <spillway/core/error.hpp>
#include <spillway/core/exact_sum.hpp>
#include <spillway/core/f32.hpp>
#include <spillway/core/lanes.hpp>
#include <spillway/device/host_device.hpp>
#include <spillway/execution/thread_pool.hpp>
#include <spillway/io/posix_file_system.hpp>
#include <spillway/io/probed_engine.hpp>
#include <spillway/io/thread_engine.hpp>
#include <spillway/layout/chunk_plan.hpp>
#include <spillway/layout/parameter_layout.hpp>
#include <spillway/observe/step_report.hpp>
#include <spillway/observe/timeline.hpp>
#include <spillway/optimizer/adamw_kernel.hpp>
#include <spillway/optimizer/any_updater.hpp>
#include <spillway/optimizer/host_updater.hpp>
#include <spillway/pipeline/memory_plan.hpp>
#include <spillway/pipeline/offload_pipeline.hpp>
#include <spillway/scheduler/sequential_scheduler.hpp>
#include <spillway/state/sampler_position.hpp>
#include <spillway/state/training_state_concept.hpp>
#include <spillway/tier/counting_tier.hpp>
#include <spillway/tier/device_tier.hpp>
#include <spillway/tier/file_tier.hpp>
#include <spillway/tier/host_tier.hpp>
#include <spillway/tier/limiting_tier.hpp>
#include <spillway/tier/tier_stack.hpp>
