// SPDX-License-Identifier: Apache-2.0
#include <spillway/io/probed_engine.hpp>
#include <spillway/io/thread_engine.hpp>

#include <string>

#include "support/catch.hpp"

using spillway::errc;
using spillway::error;
using spillway::probed_engine;
using spillway::thread_engine;
using spillway::thread_engine_options;

namespace {
struct engine_without_kernel_support : thread_engine<> {
  explicit engine_without_kernel_support(thread_engine_options o) : thread_engine<>(o) {}
  static std::string probe() { return "io_uring_setup: Operation not permitted"; }
  static constexpr char const* name = "first";
};
struct engine_that_cannot_start : thread_engine<> {
  explicit engine_that_cannot_start(thread_engine_options) {
    throw error{errc::busy, {.where = "engine_that_cannot_start", .detail = "no queue left"}};
  }
  static constexpr char const* name = "second";
};
}  // namespace

TEST_CASE("probed_engine: the first that works is chosen and named") {
  probed_engine<thread_engine<>, engine_without_kernel_support> const engine;
  CHECK(engine.report().name == "thread");
  CHECK(engine.report().reason == "thread: works");
}

TEST_CASE("probed_engine: one that does not work is passed over, and the report says why") {
  probed_engine<engine_without_kernel_support, engine_that_cannot_start, thread_engine<>> engine;
  CHECK(engine.report().name == "thread");
  CHECK(engine.report().reason ==
        "first: io_uring_setup: Operation not permitted; second: engine_that_cannot_start: no queue left: in use by "
        "another "
        "process; thread: works");
  CHECK(engine.file_system().open("/", 0, 0).ok());
}

TEST_CASE("probed_engine: when none works the error has every reason") {
  try {
    probed_engine<engine_without_kernel_support, engine_that_cannot_start> const engine;
    FAIL("an engine was chosen");
  } catch (error const& failed) {
    CHECK(failed.code() == errc::unsupported);
    CHECK(std::string(failed.what()).find("Operation not permitted") != std::string::npos);
    CHECK(std::string(failed.what()).find("no queue left") != std::string::npos);
  }
}

TEST_CASE("probed_engine: a fault in the options is the program's, and is not passed over") {
  using engine = probed_engine<thread_engine<>, engine_without_kernel_support>;
  try {
    engine const e{{.threads = 0}, {}};
    FAIL("0 threads were accepted");
  } catch (error const& failed) {
    CHECK(failed.code() == errc::invalid_option);
  }
}
