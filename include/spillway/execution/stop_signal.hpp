// SPDX-License-Identifier: Apache-2.0
/// "Please stop" from outside (SIGTERM, SIGINT), noticed between steps. Host only.
#pragma once

#include <spillway/core/config.hpp>

#include <boost/asio/io_context.hpp>
#include <boost/asio/signal_set.hpp>
#include <csignal>

namespace spillway::inline v0 {

/// While it lives, SIGTERM and SIGINT no longer end the process: they are noted, and the program asks when it suits it. The
/// handler itself only wakes Asio, so nothing is ever saved from inside a signal handler.
/// Threads: one thread.
class stop_signal {
 public:
  stop_signal() : signals_(context_, SIGTERM, SIGINT) {
    signals_.async_wait([this](boost::system::error_code const& failed, int number) {
      if (!failed) received_ = number;
    });
  }
  stop_signal(stop_signal const&) = delete;
  stop_signal& operator=(stop_signal const&) = delete;
  ~stop_signal() = default;

  /// The signal that came, 0 when none did.
  [[nodiscard]] int received() {
    context_.poll();
    return received_;
  }

 private:
  int received_ = 0;
  boost::asio::io_context context_{1};
  boost::asio::signal_set signals_;
};

}  // namespace spillway::inline v0
