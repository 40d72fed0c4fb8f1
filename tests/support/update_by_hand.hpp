// SPDX-License-Identifier: Apache-2.0
/// One tensor that an updater works on outside of any pipeline, with marks around all that it may write.
#pragma once

#include <spillway/optimizer/chunk_updater_concept.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

namespace test {

/// `G` and `P` are the types of gradient and parameter: float or spillway::bf16. Arrays are float32.
template <class G, class P>
class update_by_hand {
 public:
  update_by_hand(std::size_t arrays, std::size_t count)
      : count_(count), gradient_(count + 2 * guard), parameter_(count + 2 * guard) {
    fill(gradient_);
    fill(parameter_);
    for (std::size_t a = 0; a < arrays; ++a) {
      state_.emplace_back(count + 2 * guard);
      fill(state_.back());
    }
  }
  template <class Updater>
  void initialise(Updater& updater, std::vector<float> const& masters) {
    float const* const start = masters.data();
    with_view([&](spillway::chunk_view const& view) { updater.initialise(view, std::span{&start, 1}, {}); });
  }
  template <class Updater>
  void update(Updater& updater, std::vector<float> const& gradient, std::uint64_t step,
              spillway::update_scalars scalars = {}) {
    for (std::size_t e = 0; e < count_; ++e) {
      if constexpr (std::same_as<G, float>) {
        gradient_[guard + e] = gradient[e];
      } else {
        gradient_[guard + e] = spillway::narrow(gradient[e]);
      }
    }
    step_ = step;
    with_view([&](spillway::chunk_view const& view) { updater.update(view, scalars, {}); });
  }
  [[nodiscard]] float state(std::size_t array, std::size_t e) const { return state_[array][guard + e]; }
  [[nodiscard]] P parameter(std::size_t e) const { return parameter_[guard + e]; }
  [[nodiscard]] std::vector<std::vector<float>> const& all() const { return state_; }
  /// Nothing beside the elements was written.
  [[nodiscard]] bool guards_whole() const {
    bool whole = is_whole(gradient_) && is_whole(parameter_);
    for (auto const& array : state_) whole = whole && is_whole(array);
    return whole;
  }
  std::uint32_t group = 0;

 private:
  static constexpr std::size_t guard = 24;
  template <class T>
  static void fill(std::vector<T>& v) {
    std::memset(static_cast<void*>(v.data()), 0x5a, v.size() * sizeof(T));
  }
  template <class T>
  [[nodiscard]] bool is_whole(std::vector<T> const& v) const {
    std::vector<T> marks(guard);
    fill(marks);
    return std::memcmp(v.data(), marks.data(), guard * sizeof(T)) == 0 &&
           std::memcmp(v.data() + guard + count_, marks.data(), guard * sizeof(T)) == 0;
  }
  template <class Call>
  void with_view(Call const& call) {
    std::vector<std::byte*> arrays;
    for (auto& array : state_) arrays.push_back(reinterpret_cast<std::byte*>(array.data() + guard));
    std::uint64_t const shape[] = {count_};
    spillway::run_view const run{.count = count_,
                                 .group = group,
                                 .step = step_,
                                 .shape = shape,
                                 .gradient_type = spillway::dtype_of<G>,
                                 .parameter_type = spillway::dtype_of<P>,
                                 .gradient = reinterpret_cast<std::byte const*>(gradient_.data() + guard),
                                 .parameter = reinterpret_cast<std::byte*>(parameter_.data() + guard)};
    call(spillway::chunk_view{arrays, std::span{&run, 1}});
  }
  std::size_t count_;
  std::vector<G> gradient_;
  std::vector<P> parameter_;
  std::vector<std::vector<float>> state_{};
  std::uint64_t step_ = 1;
};

}  // namespace test
