// SPDX-License-Identifier: Apache-2.0
/// State that is too large to be a leaf: chunks of stored arrays that only their owner can move. Requirements: durable/README.md.
#pragma once

#include <spillway/layout/chunk_plan.hpp>
#include <spillway/layout/parameter_layout.hpp>
#include <spillway/layout/stored_array.hpp>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace spillway::inline v0 {

namespace detail {
/// Stand for any callables of the shapes that SpilledState takes.
struct any_array_sink {
  void operator()(std::size_t, std::span<std::byte const>) const noexcept {}
};
struct any_array_source {
  void operator()(std::size_t, std::span<std::byte>) const noexcept {}
};
struct any_sink {
  void operator()(std::span<std::byte const>) const noexcept {}
};
struct any_source {
  void operator()(std::span<std::byte>) const noexcept {}
};
struct any_visitor {
  template <class T>
  void operator()(char const*, T&) const noexcept {}
};
}  // namespace detail

/// A model's parameters and optimizer state that live on tiers; an offload_pipeline is one.
/// Semantics the compiler can't check: export_chunk calls sink(array, bytes) once an array, in order, with array_bytes() bytes,
/// padding zero; export_parameter calls sink(bytes) with consecutive pieces of the tensor's true elements; import_* pull the
/// same through source. Between begin_import and finish_import the state is unusable, and stays so if an import throws.
template <class S>
concept SpilledState = requires(S& state, S const& view, std::size_t i) {
  { view.layout() } -> std::same_as<parameter_layout const&>;
  { view.chunks() } -> std::same_as<chunk_plan const&>;
  { view.arrays() } -> std::same_as<std::span<stored_array const>>;
  { view.rule() } -> std::convertible_to<std::string>;  // kernel, rounding: what the stored bytes mean
  state.export_chunk(i, detail::any_array_sink{});
  state.export_parameter(i, detail::any_sink{});
  state.begin_import();
  state.import_chunk(i, detail::any_array_source{});
  state.import_parameter(i, detail::any_source{});
  state.finish_import();
  state.visit_counters(detail::any_visitor{});  // small leaves: per-tensor steps; as visit_state does
};

}  // namespace spillway::inline v0
