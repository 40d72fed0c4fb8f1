// SPDX-License-Identifier: Apache-2.0
#include <spillway/observe/step_report.hpp>
#include <spillway/observe/timeline.hpp>

#include <fstream>
#include <iterator>
#include <string>

#include "support/allocation_count.hpp"
#include "support/catch.hpp"
#include "support/scratch.hpp"

using namespace spillway::literals;
using spillway::busy_clock;
using spillway::resource;
using spillway::step_report;
using spillway::timeline;

namespace {
std::string text_of(std::string const& path) {
  std::ifstream in(path);
  return {std::istreambuf_iterator<char>(in), {}};
}
std::size_t count(std::string const& text, std::string const& part) {
  std::size_t n = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++n;
  return n;
}
spillway::error failure_of(timeline const& trace, std::string const& path) {
  try {
    trace.write(path);
  } catch (spillway::error const& failed) {
    return failed;
  }
  return {std::error_code{}, {}};
}
}  // namespace

TEST_CASE("timeline: writes every event in its lane, in microseconds from the first") {
  test::scratch const folder;
  timeline trace(10);
  trace.add({resource::file_read, "read", 7, 100.5, 100.75});
  trace.add({resource::host_update, "update", 7, 100.25, 100.5});
  trace.write(folder / "trace.json");
  std::string const text = text_of(folder / "trace.json");
  CHECK(text.find(R"("tid":1,"name":"read 7","ts":250000.000,"dur":250000.000})") != std::string::npos);
  CHECK(text.find(R"("tid":3,"name":"update 7","ts":0.000,"dur":250000.000})") != std::string::npos);
  CHECK(text.find(R"("dropped_events":"0")") != std::string::npos);
  CHECK(count(text, "thread_name") == spillway::resource_names.size());
  for (auto const name : spillway::resource_names) CHECK(text.find(std::string(name)) != std::string::npos);
  CHECK(count(text, "{") == count(text, "}"));
  CHECK(text.find(",\n]") == std::string::npos);  // no comma before the end
  CHECK(text.substr(text.size() - 3) == "]}\n");
}

TEST_CASE("timeline: an empty one is a whole file too") {
  test::scratch const folder;
  timeline{}.write(folder / "trace.json");
  std::string const text = text_of(folder / "trace.json");
  CHECK(count(text, "{") == count(text, "}"));
  CHECK(text.find(",\n]") == std::string::npos);
}

TEST_CASE("timeline: when its memory is full it counts what it drops, and never allocates") {
  timeline trace(4);
  std::uint64_t const before = test::allocations();
  for (std::uint32_t i = 0; i < 10; ++i) trace.add({resource::compute, "x", i, 0, 1});
  CHECK(test::allocations() == before);
  CHECK(trace.events().size() == 4);
  CHECK(trace.events()[3].number == 3);
  CHECK(trace.dropped() == 6);
}

TEST_CASE("timeline: a file that can't be written whole is an error with path and cause") {
  timeline trace(100000);
  for (std::uint32_t i = 0; i < 100000; ++i) trace.add({resource::compute, "x", i, 0, 1});
  auto const missing = failure_of(trace, "/nowhere/at/all.json");
  CHECK(missing.code() == std::errc::no_such_file_or_directory);
  CHECK(missing.about().path == "/nowhere/at/all.json");
  auto const full = failure_of(trace, "/dev/full");
  CHECK(full.code() == std::errc::no_space_on_device);
  CHECK(full.about().path == "/dev/full");
  CHECK(failure_of(timeline{}, "/dev/full").code() == std::errc::no_space_on_device);  // seen when it is closed
}

TEST_CASE("busy_clock: counts the time during which there was at least one thing to do") {
  busy_clock clock;
  clock.begin(1);
  clock.begin(2);
  clock.end(3);
  clock.end(5);
  clock.begin(10);
  clock.end(11);
  CHECK(clock.take() == 5);
  CHECK(clock.take() == 0);
}

TEST_CASE("step_report: bound by the resource that worked longest") {
  step_report report;
  report.busy[static_cast<std::size_t>(resource::host_update)] = 2;
  report.busy[static_cast<std::size_t>(resource::file_write)] = 3;
  CHECK(report.bound() == resource::file_write);
  CHECK(name_of(report.bound()) == "file write");
}

TEST_CASE("step_report: += adds what moved and how long it took, and keeps the later update") {
  step_report a{.update = 4,
                .elements = 10,
                .file = {1_KiB, 2_KiB},
                .memory = {3_B, 4_B},
                .gradients_in = 5_B,
                .parameters_out = 6_B,
                .wall = 1,
                .busy = {1, 2},
                .waited_for_read = 0.25,
                .waited_for_write = 0.5};
  step_report const b = a;
  a += b;
  a += step_report{};
  CHECK(a.update == 4);
  CHECK(a.elements == 20);
  CHECK(a.file.read == 2_KiB);
  CHECK(a.file.written == 4_KiB);
  CHECK(a.memory.read == 6_B);
  CHECK(a.memory.written == 8_B);
  CHECK(a.gradients_in == 10_B);
  CHECK(a.parameters_out == 12_B);
  CHECK(a.wall == 2);
  CHECK(a.busy[1] == 4);
  CHECK(a.waited_for_read == 0.5);
  CHECK(a.waited_for_write == 1);
}
