// SPDX-License-Identifier: Apache-2.0
/// What happened when, on which resource, as a Chrome trace (chrome://tracing, ui.perfetto.dev).
#pragma once

#include <spillway/core/error.hpp>

#include <array>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

namespace spillway::inline v0 {

/// Things that can be busy. Values are lane numbers of the trace.
enum class resource : std::uint8_t {
  file_read,
  file_write,
  host_update,
  device_to_host,
  host_to_device,
  compute,
  checkpoint
};
inline constexpr std::array<std::string_view, 7> resource_names{
    "file read", "file write", "host update", "device to host", "host to device", "compute", "checkpoint"};
[[nodiscard]] constexpr std::string_view name_of(resource r) noexcept {
  return resource_names[static_cast<std::size_t>(r)];
}

/// Seconds since some fixed moment.
[[nodiscard]] inline double seconds_now() noexcept {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

/// One thing that one resource did.
struct timeline_event {
  resource where{};
  char const* what = "";     ///< a literal
  std::uint32_t number = 0;  ///< of the chunk, or whatever `what` counts
  double begin = 0;          ///< seconds_now()
  double end = 0;
};

/// Collects events in memory reserved beforehand; when that is full further events are counted and dropped.
/// Threads: one thread.
class timeline {
 public:
  explicit timeline(std::size_t capacity = 0) { events_.reserve(capacity); }

  void add(timeline_event const& event) noexcept {
    if (events_.size() < events_.capacity()) {
      events_.push_back(event);
    } else {
      ++dropped_;
    }
  }
  [[nodiscard]] std::vector<timeline_event> const& events() const noexcept { return events_; }
  [[nodiscard]] std::uint64_t dropped() const noexcept { return dropped_; }

  /// Write the trace as JSON, one lane a resource.
  /// Errors  spillway::error with path and errno when the file can't be written whole.
  void write(std::string const& path) const {
    std::FILE* const out = std::fopen(path.c_str(), "we");
    if (out == nullptr) throw error{last_system_error(), {.where = "timeline open", .path = path}};
    double const start = events_.empty() ? 0 : earliest();
    std::fprintf(out, "{\"displayTimeUnit\":\"ms\",\"otherData\":{\"dropped_events\":\"%llu\"},\"traceEvents\":[\n",
                 static_cast<unsigned long long>(dropped_));
    for (std::size_t lane = 0; lane < resource_names.size(); ++lane) {
      std::fprintf(out, "{\"ph\":\"M\",\"pid\":1,\"tid\":%zu,\"name\":\"thread_name\",\"args\":{\"name\":\"%s\"}},\n",
                   lane + 1, resource_names[lane].data());
    }
    for (timeline_event const& e : events_) {
      std::fprintf(out, "{\"ph\":\"X\",\"pid\":1,\"tid\":%u,\"name\":\"%s %u\",\"ts\":%.3f,\"dur\":%.3f},\n",
                   static_cast<unsigned>(e.where) + 1U, e.what, e.number, (e.begin - start) * 1e6,
                   (e.end - e.begin) * 1e6);
    }
    std::fprintf(out, "{\"ph\":\"M\",\"pid\":1,\"name\":\"process_name\",\"args\":{\"name\":\"spillway\"}}\n]}\n");
    bool const failed = std::ferror(out) != 0;
    auto const code = last_system_error();
    if (std::fclose(out) != 0) throw error{last_system_error(), {.where = "timeline close", .path = path}};
    if (failed) throw error{code, {.where = "timeline write", .path = path}};
  }

 private:
  [[nodiscard]] double earliest() const noexcept {
    double first = events_.front().begin;
    for (timeline_event const& e : events_) first = e.begin < first ? e.begin : first;
    return first;
  }
  std::vector<timeline_event> events_{};
  std::uint64_t dropped_ = 0;
};

}  // namespace spillway::inline v0
