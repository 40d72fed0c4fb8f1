// SPDX-License-Identifier: Apache-2.0
#include <spillway/optimizer/host_updater.hpp>
#include <spillway/optimizer/kernel_check.hpp>

#include <string>

#include "support/catch.hpp"
#include "support/user_kernels.hpp"

namespace {
/// As a build would be in which the wide form is contracted.
struct contracted_kernel : test::momentum_kernel {
  static constexpr std::string_view name = "contracted";
  template <class V>
  static void update(constants const& c, V gradient, V (&state)[2]) noexcept {
    momentum_kernel::update(c, gradient, state);
    if constexpr (V::width > 1) state[0] = state[0] * V{1.0000001F};
  }
};
/// As a build would be in which both forms are altered alike.
struct altered_kernel : spillway::adamw_kernel {
  static constexpr std::string_view name = "altered";
};

template <class Kernel>
std::string refusal() {
  try {
    spillway::host_updater<Kernel> const made;
  } catch (spillway::error const& failed) {
    CHECK(failed.code() == spillway::errc::numerics_altered);
    return failed.what();
  }
  return "";
}
}  // namespace

template <>
inline constexpr std::uint64_t spillway::detail::golden_fingerprint<altered_kernel> = 1;

TEST_CASE("kernel_check: this build computes the bits of the contract") {
  CHECK_NOTHROW(spillway::check_numerics<spillway::adamw_kernel>());
  CHECK_NOTHROW(spillway::check_numerics<test::momentum_kernel>());
  CHECK(spillway::kernel_fingerprint<spillway::f32, spillway::adamw_kernel>() ==
        spillway::detail::golden_fingerprint<spillway::adamw_kernel>);
}

TEST_CASE("kernel_check: an updater whose kernel computes other bits is refused by name") {
  CHECK(refusal<contracted_kernel>().find("kernel contracted") != std::string::npos);
  CHECK(refusal<altered_kernel>().find("kernel altered") != std::string::npos);
  CHECK(refusal<altered_kernel>().find("golden fingerprint 1,") != std::string::npos);
}
