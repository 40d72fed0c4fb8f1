// SPDX-License-Identifier: Apache-2.0
/// The leaves of a state, collected for a save and filled by a restore.
#pragma once

#include <spillway/core/digest.hpp>
#include <spillway/core/error.hpp>
#include <spillway/durable/spilled_state_concept.hpp>
#include <spillway/layout/parameter_layout.hpp>
#include <spillway/state/leaf.hpp>
#include <spillway/state/state_walk.hpp>

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace spillway::inline v0 {

/// The most that one string or opaque leaf may hold: such leaves are for small things, and a bound keeps hostile files small.
inline constexpr bytes opaque_leaf_limit{1ULL << 30U};

namespace detail {

/// A leaf and where its bytes are now.
struct leaf_view {
  leaf_description about{};
  std::span<std::byte const> value{};
};

/// All leaves of a state, counters of the spilled state included, and which member that is.
class leaf_collection {
 public:
  template <StateLeaf L>
  void operator()(std::string name, L& leaf) {
    leaf_view found{leaf_access<L>::describe(leaf), leaf_access<L>::view(leaf)};
    found.about.name = std::move(name);
    bool const opaque = found.about.kind == leaf_kind::string || found.about.kind == leaf_kind::opaque;
    if (opaque && found.value.size() > opaque_leaf_limit.count) {
      throw error{errc::capacity_exceeded,
                  {.where = "training state",
                   .wanted = bytes{found.value.size()},
                   .got = opaque_leaf_limit,
                   .detail = "leaf " + found.about.name}};
    }
    add_name(found.about.name);
    leaves_.push_back(std::move(found));
  }
  template <SpilledState S>
  void operator()(std::string name, S& spill) {
    if (!spill_.empty()) {
      throw error{errc::unsupported,
                  {.where = "training state",
                   .detail = "both " + spill_ + " and " + name + " are spilled states; a checkpoint holds one"}};
    }
    add_name(name);
    spill.visit_counters(state_walker<leaf_collection>{*this, name + '/'});
    spill_ = std::move(name);
  }

  [[nodiscard]] std::vector<leaf_view> const& leaves() const noexcept { return leaves_; }
  [[nodiscard]] std::string const& spill() const noexcept { return spill_; }  ///< empty: there is none
  [[nodiscard]] std::vector<leaf_description> descriptions() const {
    std::vector<leaf_description> out;
    for (leaf_view const& leaf : leaves_) out.push_back(leaf.about);
    return out;
  }

 private:
  void add_name(std::string const& name) {
    if (!names_.emplace(name, 0).second) {
      throw error{errc::invalid_option, {.where = "training state", .detail = "two members are called " + name}};
    }
  }
  std::vector<leaf_view> leaves_{};
  std::map<std::string, int> names_{};
  std::string spill_{};
};

template <class State>
[[nodiscard]] leaf_collection collect_leaves(State& state) {
  leaf_collection found;
  walk_state(state, found);
  return found;
}

/// Calls `use(name, spilled state)` for the member that is one.
template <class Use>
struct spill_finder {
  Use use;
  template <StateLeaf L>
  void operator()(std::string const&, L&) const noexcept {}
  template <SpilledState S>
  void operator()(std::string const& name, S& spill) {
    use(name, spill);
  }
};
template <class State, class Use>
void with_spill(State& state, Use use) {
  spill_finder<Use> find{std::move(use)};
  walk_state(state, find);
}

using leaf_values = std::map<std::string, std::vector<std::byte>>;

/// Two passes over a state: the first may throw and changes no value, the second only assigns.
class leaf_filler {
 public:
  leaf_filler(leaf_values const& values, bool assign) : values_(&values), assign_(assign) {}

  template <StateLeaf L>
  void operator()(std::string const& name, L& leaf) const {
    auto const& value = values_->at(name);
    if (assign_) {
      leaf_access<L>::assign(leaf, value);
    } else {
      leaf_access<L>::prepare(leaf, value.size());
    }
  }
  template <SpilledState S>
  void operator()(std::string const& name, S& spill) const {
    // Its counters belong to its import, which may recompute what follows from them.
    if (!assign_) spill.visit_counters(state_walker<leaf_filler const>{*this, name + '/'});
  }

 private:
  leaf_values const* values_;
  bool assign_;
};

[[nodiscard]] inline state_digest digest_of_leaf(leaf_description const& about, std::span<std::byte const> value) {
  state_digest out;
  out.add_blocks("leaves/" + about.name, 0, block_elements * size_of(about.type), value);
  return out;
}

}  // namespace detail
}  // namespace spillway::inline v0
