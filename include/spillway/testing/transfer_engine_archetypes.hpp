// SPDX-License-Identifier: Apache-2.0
/// The least that models TransferEngine, and a near miss per requirement.
#pragma once

#include <spillway/core/bytes.hpp>
#include <spillway/io/transfer_engine_concept.hpp>
#include <spillway/testing/file_system_archetypes.hpp>
#include <spillway/testing/transfer_archetypes.hpp>

#include <cstddef>
#include <span>
#include <string>

namespace spillway::inline v0::testing {

struct minimal_engine {
  using file_system_type = minimal_file_system;
  explicit minimal_engine(int) noexcept {}  // no default constructor, no copy
  minimal_engine(minimal_engine&&) noexcept = default;
  minimal_engine& operator=(minimal_engine&&) noexcept = default;
  ~minimal_engine() = default;
  minimal_file_system& file_system() { return files; }
  minimal_transfer read(file_reference, bytes, std::span<std::byte>) { return minimal_transfer{0}; }
  minimal_transfer write(file_reference, bytes, std::span<std::byte const>) { return minimal_transfer{0}; }
  void drain() noexcept {}
  [[nodiscard]] engine_report report() const { return {}; }

  minimal_file_system files{0};
};

namespace near_miss {

struct engine_not_movable : minimal_engine {
  using minimal_engine::minimal_engine;
  engine_not_movable(engine_not_movable&&) = delete;
  engine_not_movable& operator=(engine_not_movable&&) = delete;
  ~engine_not_movable() = default;
};
struct engine_of_no_file_system : minimal_engine {
  using file_system_type = int;
};
struct engine_file_system_by_value : minimal_engine {
  minimal_file_system file_system() { return minimal_file_system{0}; }
};
struct engine_read_returns_count : minimal_engine {
  std::size_t read(file_reference, bytes, std::span<std::byte>) { return 0; }
};
struct engine_write_returns_count : minimal_engine {
  std::size_t write(file_reference, bytes, std::span<std::byte const>) { return 0; }
};
struct engine_write_takes_mutable_bytes : minimal_engine {
  minimal_transfer write(file_reference, bytes, std::span<std::byte>) { return minimal_transfer{0}; }
};
struct engine_without_drain : minimal_engine {
  void drain() = delete;
};
struct engine_throwing_drain : minimal_engine {
  void drain() {}
};
struct engine_report_is_text : minimal_engine {
  [[nodiscard]] std::string report() const { return {}; }
};
struct engine_mutable_report : minimal_engine {
  engine_report report() { return {}; }
};

}  // namespace near_miss

}  // namespace spillway::inline v0::testing
