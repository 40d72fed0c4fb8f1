// SPDX-License-Identifier: Apache-2.0
/// Several tiers, fastest first, and which chunk rests on which.
#pragma once

#include <spillway/core/config.hpp>
#include <spillway/core/error.hpp>
#include <spillway/tier/memory_tier_concept.hpp>

#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace spillway::inline v0 {

/// The fraction of the chunks that a tier holds.
template <MemoryTier Tier>
struct share {
  double fraction;
  Tier tier;
};
template <class Tier>
share(double, Tier) -> share<Tier>;

/// Tiers, fastest first, each with its share of the chunks. Not a MemoryTier: a region belongs to one of its tiers.
template <MemoryTier... Tiers>
class tier_stack {
  static_assert(sizeof...(Tiers) > 0, "a tier_stack has at least one tier");

 public:
  static constexpr std::size_t size = sizeof...(Tiers);

  /// Errors  invalid_option: a share below 0, or shares that do not sum to 1 (within 1e-9).
  explicit tier_stack(share<Tiers>... tiers) : shares_{tiers.fraction...}, tiers_(std::move(tiers.tier)...) {
    double sum = 0;
    for (double const s : shares_) {
      if (!(s >= 0)) throw error{errc::invalid_option, about("share " + std::to_string(s) + " is below 0")};
      sum += s;
    }
    if (!(std::abs(sum - 1) <= 1e-9)) {
      throw error{errc::invalid_option, about("shares sum to " + std::to_string(sum) + ", not to 1")};
    }
  }

  [[nodiscard]] std::array<double, size> const& shares() const noexcept { return shares_; }
  template <std::size_t I>
  [[nodiscard]] auto& get() noexcept {
    return std::get<I>(tiers_);
  }
  template <std::size_t I>
  [[nodiscard]] auto const& get() const noexcept {
    return std::get<I>(tiers_);
  }
  /// f(tier `index`); f returns the same type for every tier.
  /// Pre  index < size.
  template <class F>
  decltype(auto) visit(std::size_t index, F&& f) {
    SPILLWAY_EXPECTS(index < size);
    return visit_from<0>(tiers_, index, f);
  }
  template <class F>
  decltype(auto) visit(std::size_t index, F&& f) const {
    SPILLWAY_EXPECTS(index < size);
    return visit_from<0>(tiers_, index, f);
  }

  /// Which tier each of `chunks` chunks rests on: counts by largest remainder (ties to the faster tier), spread
  /// evenly, so that fast and slow chunks alternate and the slow link is busy throughout a step. Always the same
  /// for the same shares.
  [[nodiscard]] std::vector<std::uint32_t> place(std::size_t chunks) const {
    std::array<std::size_t, size> const wanted = counts(chunks);
    std::array<std::size_t, size> placed{};
    std::vector<std::uint32_t> out(chunks);
    for (std::size_t i = 0; i < chunks; ++i) {
      std::size_t furthest_behind = size;
      double most = 0;
      for (std::size_t t = 0; t < size; ++t) {
        if (placed[t] == wanted[t]) continue;
        // Chunks due by now, were they spread with no rounding, less those placed. Exact: below 2^53.
        double const behind = static_cast<double>(wanted[t]) * static_cast<double>(i + 1) -
                              static_cast<double>(placed[t]) * static_cast<double>(chunks);
        if (furthest_behind == size || behind > most) {
          furthest_behind = t;
          most = behind;
        }
      }
      ++placed[furthest_behind];
      out[i] = static_cast<std::uint32_t>(furthest_behind);
    }
    return out;
  }

 private:
  static error::context about(std::string detail) { return {.where = "tier_stack", .detail = std::move(detail)}; }

  [[nodiscard]] std::array<std::size_t, size> counts(std::size_t chunks) const {
    std::array<std::size_t, size> out{};
    std::array<double, size> rest{};
    std::size_t given = 0;
    for (std::size_t t = 0; t < size; ++t) {
      double const exact = shares_[t] * static_cast<double>(chunks);
      double const whole = std::floor(exact);
      out[t] = static_cast<std::size_t>(whole);
      rest[t] = exact - whole;
      given += out[t];
    }
    while (given < chunks) {
      std::size_t most = 0;
      for (std::size_t t = 1; t < size; ++t) {
        if (rest[t] > rest[most]) most = t;
      }
      ++out[most];
      rest[most] -= 1;
      ++given;
    }
    return out;
  }

  template <std::size_t I, class Tuple, class F>
  static decltype(auto) visit_from(Tuple& tiers, std::size_t index, F& f) {
    if constexpr (I + 1 == size) {
      return f(std::get<I>(tiers));
    } else {
      if (index == I) return f(std::get<I>(tiers));
      return visit_from<I + 1>(tiers, index, f);
    }
  }

  std::array<double, size> shares_;
  std::tuple<Tiers...> tiers_;
};
template <class... Tiers>
tier_stack(share<Tiers>...) -> tier_stack<Tiers...>;  // clang 14 needs it spelt

}  // namespace spillway::inline v0
