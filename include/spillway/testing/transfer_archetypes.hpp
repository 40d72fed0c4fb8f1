// SPDX-License-Identifier: Apache-2.0
/// The least that models Transfer, and a near miss per requirement.
#pragma once

#include <system_error>

namespace spillway::inline v0::testing {

struct minimal_transfer {
  explicit minimal_transfer(int) noexcept {}  // no default constructor
  minimal_transfer(minimal_transfer&&) noexcept = default;
  minimal_transfer& operator=(minimal_transfer&&) noexcept = default;
  ~minimal_transfer() = default;
  bool poll() noexcept { return true; }
  void wait() {}
  [[nodiscard]] std::error_code status() const noexcept { return {}; }
};

namespace near_miss {

struct transfer_not_movable : minimal_transfer {
  using minimal_transfer::minimal_transfer;
  transfer_not_movable(transfer_not_movable&&) = delete;
  transfer_not_movable& operator=(transfer_not_movable&&) = delete;
  ~transfer_not_movable() = default;
};
struct transfer_poll_returns_int : minimal_transfer {
  using minimal_transfer::minimal_transfer;
  int poll() noexcept { return 1; }
};
struct transfer_throwing_poll : minimal_transfer {
  using minimal_transfer::minimal_transfer;
  bool poll() { return true; }
};
struct transfer_without_wait : minimal_transfer {
  using minimal_transfer::minimal_transfer;
  void wait() = delete;
};
struct transfer_status_returns_int : minimal_transfer {
  using minimal_transfer::minimal_transfer;
  [[nodiscard]] int status() const noexcept { return 0; }
};
struct transfer_mutable_status : minimal_transfer {
  using minimal_transfer::minimal_transfer;
  std::error_code status() noexcept { return {}; }
};
struct transfer_throwing_status : minimal_transfer {
  using minimal_transfer::minimal_transfer;
  [[nodiscard]] std::error_code status() const { return {}; }
};

}  // namespace near_miss

}  // namespace spillway::inline v0::testing
