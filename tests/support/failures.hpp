// SPDX-License-Identifier: Apache-2.0
/// What a call that may fail threw.
#pragma once

#include <spillway/core/error.hpp>

#include <cstdlib>
#include <optional>
#include <system_error>
#include <utility>

#include "support/catch.hpp"

namespace test {

/// Empty when nothing was thrown.
template <class Call>
std::optional<spillway::error> failure_of(Call call) {
  try {
    call();
  } catch (spillway::error const& failed) {
    return failed;
  }
  return {};
}
/// No error when nothing was thrown.
template <class Call>
std::error_code code_of(Call call) {
  auto const failed = failure_of(std::move(call));
  return failed ? failed->code() : std::error_code{};
}
/// The test fails when nothing was thrown.
template <class Call>
[[nodiscard]] spillway::error thrown_by(Call call) {
  if (auto failed = failure_of(std::move(call))) return *failed;
  FAIL("nothing was thrown");
  std::abort();
}

}  // namespace test
