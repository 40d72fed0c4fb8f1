// SPDX-License-Identifier: Apache-2.0
/// The TransferEngine that is chosen when the program starts, and says why.
#pragma once

#include <spillway/core/bytes.hpp>
#include <spillway/core/error.hpp>
#include <spillway/io/transfer_engine_concept.hpp>

#include <concepts>
#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <variant>

namespace spillway::inline v0 {

/// A TransferEngine that a probed_engine can try: `probe()` is empty when it works on this machine, else why not.
template <class E>
concept ProbedCandidate = TransferEngine<E> && requires {
  typename E::options_type;
  { E::probe() } -> std::same_as<std::string>;
  { E::name } -> std::convertible_to<char const*>;
  requires std::constructible_from<E, typename E::options_type>;
};

/// The first of `Candidates` whose probe and constructor succeed. All share one FileSystem type and one transfer type,
/// so a call costs one branch.
/// Threads  as the candidate's.
template <ProbedCandidate First, ProbedCandidate... Rest>
class probed_engine {
  static_assert((std::same_as<typename First::file_system_type, typename Rest::file_system_type> && ...),
                "the candidates of a probed_engine share one FileSystem");

 public:
  using file_system_type = typename First::file_system_type;
  using transfer_type = decltype(std::declval<First&>().read(file_reference{}, bytes{}, std::span<std::byte>{}));

  /// Errors  unsupported when no candidate works, with the reason of each.
  probed_engine() : probed_engine(typename First::options_type{}, typename Rest::options_type{}...) {}
  explicit probed_engine(typename First::options_type first, typename Rest::options_type... rest) {
    static_cast<void>((attempt<First>(first) || ... || attempt<Rest>(rest)));
    require();
  }
  /// Only the candidate of that name.
  /// Errors  unsupported when it does not work or there is none of that name.
  [[nodiscard]] static probed_engine only(std::string_view name) {
    probed_engine out{nothing_tried{}};
    auto const try_one = [&]<class Engine>(std::type_identity<Engine>) {
      return Engine::name == name && out.template attempt<Engine>(typename Engine::options_type{});
    };
    static_cast<void>((try_one(std::type_identity<First>{}) || ... || try_one(std::type_identity<Rest>{})));
    if (out.reason_.empty()) out.reason_ = "no candidate is called " + std::string(name);
    out.require();
    return out;
  }

  [[nodiscard]] file_system_type& file_system() noexcept {
    return std::visit([](auto& engine) -> file_system_type& { return engine.file_system(); }, *chosen_);
  }
  [[nodiscard]] transfer_type read(file_reference from, bytes offset, std::span<std::byte> to) {
    return std::visit([&](auto& engine) -> transfer_type { return engine.read(from, offset, to); }, *chosen_);
  }
  [[nodiscard]] transfer_type write(file_reference to, bytes offset, std::span<std::byte const> from) {
    return std::visit([&](auto& engine) -> transfer_type { return engine.write(to, offset, from); }, *chosen_);
  }
  void drain() noexcept {
    std::visit([](auto& engine) { engine.drain(); }, *chosen_);
  }
  /// The chosen engine's name; the candidates in order, each with what its probe said.
  [[nodiscard]] engine_report report() const { return {name_, reason_}; }

 private:
  struct nothing_tried {};
  explicit probed_engine(nothing_tried) noexcept {}
  void require() {
    if (!chosen_) {
      throw error{errc::unsupported, {.where = "probed_engine: no engine works", .detail = std::move(reason_)}};
    }
  }

  template <class Engine>
  bool attempt(typename Engine::options_type const& options) {
    std::string reason = Engine::probe();
    if (reason.empty()) {
      try {
        chosen_.emplace(std::in_place_type<Engine>, options);
      } catch (error const& failed) {
        if (failed.code() == errc::invalid_option) throw;  // a fault of the program, not of the machine
        reason = failed.what();
      }
    }
    reason_ += (reason_.empty() ? "" : "; ") + std::string(Engine::name) + ": " + (reason.empty() ? "works" : reason);
    if (!reason.empty()) return false;
    name_ = Engine::name;
    return true;
  }

  std::optional<std::variant<First, Rest...>> chosen_;
  std::string name_;
  std::string reason_;
};

}  // namespace spillway::inline v0
