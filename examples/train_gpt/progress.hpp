// SPDX-License-Identifier: Apache-2.0
/// What the program shows: a line a step, and a table at the end.
#pragma once

#include <spillway/core/bytes.hpp>
#include <spillway/observe/step_report.hpp>

#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstring>
#include <string>

namespace train_gpt {

/// The most memory that this process has held, as the system counts it.
[[nodiscard]] inline spillway::bytes peak_host_memory() {
  std::FILE* const status = std::fopen("/proc/self/status", "re");
  if (status == nullptr) return {};
  char line[256];
  unsigned long long kib = 0;
  while (std::fgets(line, sizeof line, status) != nullptr) {
    if (std::strncmp(line, "VmHWM:", 6) == 0) std::sscanf(line + 6, "%llu", &kib);
  }
  std::fclose(status);
  return spillway::bytes{kib * 1024};
}

class progress {
 public:
  explicit progress(std::uint64_t steps) : steps_(steps), terminal_(::isatty(STDOUT_FILENO) == 1) {}

  /// One step: `compute` seconds of forward and backward, `wall` seconds in all.
  void step(std::uint64_t number, double loss, std::uint64_t tokens, double compute, double wall,
            spillway::step_report const& report) {
    using spillway::resource;
    std::string bound = "compute";
    double most = compute;
    for (std::size_t r = 0; r < report.busy.size(); ++r) {
      if (report.busy[r] > most) {
        most = report.busy[r];
        bound = name_of(static_cast<resource>(r));
      }
    }
    std::printf("%sstep %llu/%llu  loss %.4f  %.0f tokens/s  bound by %s%s%s", terminal_ ? "\r\033[K" : "",
                static_cast<unsigned long long>(number), static_cast<unsigned long long>(steps_), loss,
                static_cast<double>(tokens) / wall, bound.c_str(),
                report.skipped ? "  (skipped: a gradient was not finite)" : "", terminal_ ? "" : "\n");
    std::fflush(stdout);
    ++counted_;
    compute_ += compute;
    wall_ += wall;
    total_ += report;
  }
  /// A line of its own, whatever the terminal shows.
  void note(std::string const& text) const {
    std::printf("%s%s\n", terminal_ ? "\r\033[K" : "", text.c_str());
    std::fflush(stdout);
  }
  /// Bytes per parameter and step on each link, time by resource. `stored`: elements with the padding of tensors to whole blocks.
  void table(std::uint64_t parameters, std::uint64_t stored) const {
    if (counted_ == 0) return;
    if (terminal_) std::printf("\n");
    auto const per = [&](spillway::bytes n, std::uint64_t elements) {
      return static_cast<double>(n.count) / static_cast<double>(elements) / static_cast<double>(counted_);
    };
    auto const each = [&](spillway::bytes n) { return per(n, parameters); };
    std::printf("\n%-28s %12s %12s\n", "bytes per parameter and step", "read", "written");
    std::printf("%-28s %12.3f %12.3f\n", "file link (state)", each(total_.file.read), each(total_.file.written));
    std::printf("%-28s %12.3f %12.3f\n", "  by element with padding", per(total_.file.read, stored),
                per(total_.file.written, stored));
    std::printf("%-28s %12.3f %12.3f\n", "host memory (state in place)", each(total_.memory.read),
                each(total_.memory.written));
    std::printf("%-28s %12.3f %12s\n", "device to host (gradients)", each(total_.gradients_in), "-");
    std::printf("%-28s %12s %12.3f\n", "host to device (parameters)", "-", each(total_.parameters_out));
    std::printf("\n%-28s %12s %12s\n", "time by resource", "s/step", "of wall");
    auto const row = [&](std::string const& name, double seconds) {
      std::printf("%-28s %12.4f %11.1f%%\n", name.c_str(), seconds / static_cast<double>(counted_),
                  100 * seconds / wall_);
    };
    row("compute", compute_);
    for (std::size_t r = 0; r < total_.busy.size(); ++r) {
      auto const which = static_cast<spillway::resource>(r);
      if (which == spillway::resource::compute || which == spillway::resource::checkpoint) continue;
      row(std::string(name_of(which)), total_.busy[r]);
    }
    row("standing still for a chunk", total_.waited_for_read);
    row("standing still for a slot", total_.waited_for_write);
    row("wall", wall_);
  }
  static void peak(char const* what, spillway::bytes most, spillway::bytes budget) {
    std::printf("%-28s %12s of %s\n", what, to_string(most).c_str(), to_string(budget).c_str());
  }

 private:
  std::uint64_t steps_;
  bool terminal_;
  std::uint64_t counted_ = 0;
  double compute_ = 0;
  double wall_ = 0;
  spillway::step_report total_{};
};

}  // namespace train_gpt
