// SPDX-License-Identifier: Apache-2.0
#include <spillway/durable/publish.hpp>
#include <spillway/durable/retention.hpp>
#include <spillway/durable/save_id.hpp>
#include <spillway/durable/step_directory.hpp>

#include <filesystem>
#include <string>
#include <thread>

#include "support/catch.hpp"
#include "support/checkpoint_run.hpp"
#include "support/scratch.hpp"

namespace {
using namespace spillway;
using role = directory_name::role;

void save_empty(posix_file_system& fs, std::string const& root, std::uint64_t step, std::uint64_t sequence) {
  manifest const record{.save_id = make_save_id(), .step = step, .sequence = sequence};
  pending_checkpoint<> pending{fs, root, step, record.save_id, {}};
  pending.commit(record);
}
}  // namespace

TEST_CASE("step_directory: only the names that a save makes are taken for one") {
  std::string const id = "0123456789abcdef0123456789abcdef";
  for (std::uint64_t const step : {std::uint64_t{0}, std::uint64_t{7}, std::uint64_t{123456789}, ~std::uint64_t{0}}) {
    auto const plain = parse_directory_name(step_name(step));
    REQUIRE(plain);
    CHECK((plain->is == role::step && plain->step == step));
    auto const temporary = parse_directory_name(step_name(step) + ".tmp-" + id);
    REQUIRE(temporary);
    CHECK((temporary->is == role::unfinished && temporary->step == step));
  }
  CHECK(step_name(7) == "step-00000007");
  CHECK(parse_directory_name(".trash-" + id)->is == role::trash);
  for (std::string const& name :
       {std::string(), std::string("step"), std::string("step-"), std::string("step-7"), std::string("step-0000000x"),
        std::string("step-000000007"), std::string("step--0000007"), std::string("step-+0000007"),
        std::string("Step-00000007"), std::string("step-00000007 "), std::string("step-00000007.bak"),
        "step-00000007.tmp-" + id + "0", "step-00000007.tmp-0" + id.substr(2), std::string(".trash"),
        std::string(".trash-abc"), ".trash-" + id + "x", "step-7.tmp-" + id,
        std::string("step-18446744073709551616")}) {
    INFO(name);
    CHECK_FALSE(parse_directory_name(name));
  }
}

TEST_CASE("save_id: two are never the same") { CHECK_FALSE(make_save_id() == make_save_id()); }

TEST_CASE("publish: a directory of the step, even an empty one, is never replaced, and nothing of the save remains") {
  test::scratch folder;
  posix_file_system fs;
  std::filesystem::create_directory(folder / "step-00000005");
  try {
    save_empty(fs, folder.path(), 5, 1);
    FAIL("replaced");
  } catch (error const& failure) {
    CHECK(failure.code() == durable_errc::already_exists);
    CHECK(failure.about().path == folder / "step-00000005");
  }
  CHECK(folder.names() == std::vector<std::string>{"step-00000005"});
  CHECK(std::filesystem::is_empty(folder / "step-00000005"));
}

TEST_CASE("publish: a save that is given up leaves nothing") {
  test::scratch folder;
  posix_file_system fs;
  {
    pending_checkpoint<> pending{fs, folder.path(), 5, make_save_id(), {}};
    test::write_file(pending.path_of("model.safetensors"), "half");
    CHECK(folder.names().size() == 1);
  }
  CHECK(folder.names().empty());
}

TEST_CASE("retention: two that clean at once both succeed") {
  test::scratch folder;
  posix_file_system fs;
  for (std::uint64_t step = 1; step <= 40; ++step) save_empty(fs, folder.path(), step, step);
  std::vector<std::string> warnings[2];
  {
    std::thread other{[&] { warnings[0] = apply_retention(fs, folder.path(), 2, folder / "step-00000040"); }};
    warnings[1] = apply_retention(fs, folder.path(), 2, folder / "step-00000040");
    other.join();
  }
  for (auto const& list : warnings) {
    for (auto const& warning : list) FAIL_CHECK(warning);
  }
  CHECK(folder.names() == std::vector<std::string>{"step-00000039", "step-00000040"});
}
