// SPDX-License-Identifier: Apache-2.0
/// The least that models ChunkUpdater, and a near miss per requirement.
#pragma once

#include <spillway/optimizer/chunk_updater_concept.hpp>

#include <span>
#include <utility>

namespace spillway::inline v0::testing {

/// No default constructor, no copy.
struct minimal_updater {
  explicit minimal_updater(int) {}
  minimal_updater(minimal_updater&&) = default;
  minimal_updater& operator=(minimal_updater&&) = default;
  ~minimal_updater() = default;
  [[nodiscard]] updater_schema const& schema() const { return schema_; }
  void update(chunk_view const&, update_scalars const&, native_stream) {}
  void initialise(chunk_view const&, std::span<float const* const>, native_stream) {}

 private:
  updater_schema schema_{.kernel = "minimal", .arrays = {{"master", "float32", dtype::float32, 4096}}};
};

namespace near_miss {

struct updater_not_movable : minimal_updater {
  using minimal_updater::minimal_updater;
  updater_not_movable(updater_not_movable&&) = delete;
};
struct updater_without_schema : minimal_updater {
  void schema() const {}
};
struct updater_that_copies_its_schema : minimal_updater {
  [[nodiscard]] updater_schema schema() const { return minimal_updater::schema(); }
};
struct updater_schema_only_when_mutable : minimal_updater {
  updater_schema const& schema() { return std::as_const(*this).minimal_updater::schema(); }
};
struct updater_that_takes_no_stream : minimal_updater {
  void update(chunk_view const&, update_scalars const&) {}
};
struct updater_that_changes_the_chunk_view : minimal_updater {
  void update(chunk_view&, update_scalars const&, native_stream) {}
};
struct updater_that_changes_the_scalars : minimal_updater {
  void update(chunk_view const&, update_scalars&, native_stream) {}
};
struct updater_without_initialise : minimal_updater {
  void initialise() {}
};
struct updater_that_changes_masters : minimal_updater {
  void initialise(chunk_view const&, std::span<float* const>, native_stream) {}
};

}  // namespace near_miss

}  // namespace spillway::inline v0::testing
