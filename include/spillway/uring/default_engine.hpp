// SPDX-License-Identifier: Apache-2.0
/// The engine for a program that is built with the uring component.
#pragma once

#include <spillway/io/probed_engine.hpp>
#include <spillway/io/thread_engine.hpp>
#include <spillway/uring/uring_engine.hpp>

namespace spillway::inline v0 {

/// io_uring where the machine allows it, else threads; report() says which, and why. A program built without this
/// component uses thread_engine<> and says so in `thread_engine_options::reason`.
using default_engine = probed_engine<uring_engine, thread_engine<>>;
static_assert(TransferEngine<default_engine>);

}  // namespace spillway::inline v0
