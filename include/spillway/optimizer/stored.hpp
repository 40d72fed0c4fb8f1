// SPDX-License-Identifier: Apache-2.0
/// A kernel with the codecs that its arrays are stored by.
#pragma once

#include <spillway/layout/stored_array.hpp>
#include <spillway/optimizer/float32.hpp>
#include <spillway/optimizer/optimizer_kernel_concept.hpp>

#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace spillway::inline v0 {

/// `Kernel` whose array i is stored by the i-th codec. A kernel by itself stores every array as float32.
/// The parameter is rounded by `Rule`; a codec that needs the parameter may only work under the rule that its name states.
template <OptimizerKernel Kernel, rounding Rule, StateCodec... Codecs>
  requires(sizeof...(Codecs) == Kernel::arrays.size())
struct stored {
  Kernel kernel{};
};

namespace detail {
/// What a kernel, alone or inside `stored`, comes to.
template <class K>
struct storage_of;
template <OptimizerKernel K, rounding Rule, StateCodec... Codecs>
struct storage_of<stored<K, Rule, Codecs...>> {
  using kernel = K;
  using codecs = std::tuple<Codecs...>;
  static constexpr rounding rule = Rule;
  static constexpr bool needs_parameter = (Codecs::needs_parameter || ...);
  static constexpr bool all_plain = (std::same_as<Codecs, float32> && ...);
  static K const& bare(stored<K, Rule, Codecs...> const& s) noexcept { return s.kernel; }

  static std::vector<stored_array> arrays() {
    std::vector<stored_array> out;
    std::size_t i = 0;
    (out.push_back({std::string(K::arrays[i++]), std::string(Codecs::name), Codecs::type, Codecs::bytes_per_block}),
     ...);
    return out;
  }
};
template <OptimizerKernel K, std::size_t... I>
auto all_float32(std::index_sequence<I...>)
    -> stored<K, rounding::nearest_even, std::conditional_t<I != ~std::size_t{0}, float32, void>...>;
template <OptimizerKernel K>
struct storage_of<K> : storage_of<decltype(all_float32<K>(std::make_index_sequence<K::arrays.size()>{}))> {
  static K const& bare(K const& k) noexcept { return k; }
};
}  // namespace detail

}  // namespace spillway::inline v0
