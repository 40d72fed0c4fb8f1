// SPDX-License-Identifier: Apache-2.0
/// How files are moved: io_uring where the program is built with that component and the machine allows it, else threads.
#pragma once

#include <spillway/io/thread_engine.hpp>
#if TRAIN_GPT_URING
#include <spillway/uring/default_engine.hpp>  // a component of its own: the build says whether it is there
#endif

namespace train_gpt {

#if TRAIN_GPT_URING
using file_engine = spillway::default_engine;
[[nodiscard]] inline file_engine make_engine(bool threads) {
  return threads ? file_engine::only("thread") : file_engine{};
}
#else
using file_engine = spillway::thread_engine<>;
[[nodiscard]] inline file_engine make_engine(bool) {
  return file_engine{{.reason = "built without the uring component"}};
}
#endif

}  // namespace train_gpt
