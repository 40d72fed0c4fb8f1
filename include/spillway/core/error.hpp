// SPDX-License-Identifier: Apache-2.0
/// What the environment can do to us, as one exception type that always names the thing.
#pragma once

#include <spillway/core/bytes.hpp>

#include <cerrno>
#include <cstdint>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

namespace spillway::inline v0 {

/// What went wrong. Values are stable: they appear in logs and manifests.
enum class errc {
  capacity_exceeded = 1,  ///< a tier, a device or a budget cannot hold what was asked
  short_transfer = 2,     ///< end of file before all bytes were moved
  misaligned = 3,         ///< an offset, length or address that the place refuses
  unsupported = 4,        ///< the machine or the configuration cannot do it
  invalid_option = 5,     ///< a configured value that makes no sense
  numerics_altered = 6,   ///< this build computes other bits than the contract promises
  busy = 7,               ///< another process holds it
  poisoned = 8,           ///< an earlier failure left the state partly updated; only restore or close
  gradient_missing = 9,   ///< a step was asked for and no tensor has a gradient
  layout_mismatch = 10,   ///< names, shapes, dtypes or groups differ from what is wanted
  device_failed = 11,     ///< a submitted task threw, or the device reported an error
};

namespace detail {
class core_category final : public std::error_category {
 public:
  [[nodiscard]] char const* name() const noexcept override { return "spillway"; }
  [[nodiscard]] std::string message(int code) const override {
    switch (static_cast<errc>(code)) {
      case errc::capacity_exceeded:
        return "capacity exceeded";
      case errc::short_transfer:
        return "short transfer";
      case errc::misaligned:
        return "misaligned";
      case errc::unsupported:
        return "unsupported";
      case errc::invalid_option:
        return "invalid option";
      case errc::numerics_altered:
        return "numerics altered: this build computes other bits than the contract promises";
      case errc::busy:
        return "in use by another process";
      case errc::poisoned:
        return "an earlier failure left the state partly updated";
      case errc::gradient_missing:
        return "no tensor has a gradient";
      case errc::layout_mismatch:
        return "layout mismatch";
      case errc::device_failed:
        return "device failed";
    }
    return "unknown spillway error " + std::to_string(code);
  }
};
inline constinit core_category const core_category_instance{};
}  // namespace detail

[[nodiscard]] inline std::error_code make_error_code(errc code) noexcept {
  return {static_cast<int>(code), detail::core_category_instance};
}
/// errno as it is now.
[[nodiscard]] inline std::error_code last_system_error() noexcept { return {errno, std::system_category()}; }

/// The environment failed us: device, disk, network, file contents, or a configured value. Bugs in the caller are contract
/// violations instead. Copyable; the text names the place, the path and the numbers.
class error : public std::system_error {
 public:
  struct context {
    std::string where{};  ///< policy and call: "file_tier read"
    std::string path{};   ///< empty when no file is involved
    std::uint64_t offset = 0;
    bytes wanted{};
    bytes got{};
    std::string detail{};  ///< one more sentence for people: which tensor, which flag, what to do
  };
  error(std::error_code code, context about) : std::system_error(code, text(about)), about_(std::move(about)) {}
  [[nodiscard]] context const& about() const noexcept { return about_; }

 private:
  static std::string text(context const& about) {
    std::string out = about.where;
    if (!about.path.empty()) out += " " + about.path;
    if (about.offset != 0) out += " at offset " + std::to_string(about.offset);
    if (about.wanted.count != 0 || about.got.count != 0) {
      out += ": wanted " + std::to_string(about.wanted.count) + " B, got " + std::to_string(about.got.count) + " B";
    }
    if (!about.detail.empty()) out += ": " + about.detail;
    return out;
  }
  context about_;
};

}  // namespace spillway::inline v0

template <>
struct std::is_error_code_enum<spillway::errc> : std::true_type {};
