// SPDX-License-Identifier: Apache-2.0
/// What one step moved over each link, how long each resource worked, and which one bound it.
#pragma once

#include <spillway/core/bytes.hpp>
#include <spillway/observe/timeline.hpp>

#include <algorithm>
#include <array>
#include <cstdint>
#include <utility>

namespace spillway::inline v0 {

/// Time during which a resource had at least one thing to do, as far as its owner looked.
class busy_clock {
 public:
  void begin(double now) noexcept {
    if (active_++ == 0) since_ = now;
  }
  void end(double now) noexcept {
    if (--active_ == 0) seconds_ += now - since_;
  }
  /// Seconds since the last take.
  [[nodiscard]] double take() noexcept { return std::exchange(seconds_, 0.0); }

 private:
  unsigned active_ = 0;
  double since_ = 0;
  double seconds_ = 0;
};

/// Bytes over one link in each direction, as seen from the state's home.
struct link_bytes {
  bytes read{};
  bytes written{};
  link_bytes& operator+=(link_bytes const& other) noexcept {
    read += other.read;
    written += other.written;
    return *this;
  }
};

/// One optimizer step. += adds what was moved and how long it took, and keeps the later update; skipped, norm and clip stay.
struct step_report {
  std::uint64_t update = 0;    ///< number of the update; of a skipped step: the one that did not happen
  bool skipped = false;        ///< a gradient was not finite: no byte of state changed
  double gradient_norm = 0;    ///< global, unscaled, before clipping
  double clip = 1;             ///< factor that was applied
  std::uint64_t elements = 0;  ///< true elements updated
  link_bytes file{};           ///< state over the file link: through slots, tiers that the host can't address
  link_bytes memory{};         ///< state read and written in place in host memory
  bytes gradients_in{};        ///< device to host since the last step
  bytes parameters_out{};      ///< host to device
  double wall = 0;             ///< seconds
  std::array<double, resource_names.size()> busy{};  ///< seconds, by resource
  double waited_for_read = 0;                        ///< the loop stood still for a chunk
  double waited_for_write = 0;                       ///< the loop stood still for a slot

  /// The resource that worked longest during the step.
  [[nodiscard]] resource bound() const noexcept {
    std::size_t most = 0;
    for (std::size_t i = 1; i < busy.size(); ++i) most = busy[i] > busy[most] ? i : most;
    return static_cast<resource>(most);
  }
  step_report& operator+=(step_report const& other) noexcept {
    update = std::max(update, other.update);
    elements += other.elements;
    file += other.file;
    memory += other.memory;
    gradients_in += other.gradients_in;
    parameters_out += other.parameters_out;
    wall += other.wall;
    for (std::size_t i = 0; i < busy.size(); ++i) busy[i] += other.busy[i];
    waited_for_read += other.waited_for_read;
    waited_for_write += other.waited_for_write;
    return *this;
  }
};

}  // namespace spillway::inline v0
