// SPDX-License-Identifier: Apache-2.0
/// The ordered list of named tensors and the flat block space they span.
#pragma once

#include <spillway/core/bytes.hpp>
#include <spillway/core/dtype.hpp>
#include <spillway/core/error.hpp>

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace spillway::inline v0 {

/// Elements of one block, the quantum of the flat space: every tensor starts on one.
inline constexpr std::uint64_t block_elements = 1024;

/// Number of blocks that hold `elements`.
[[nodiscard]] constexpr std::uint64_t blocks_for(std::uint64_t elements) noexcept {
  return elements / block_elements + (elements % block_elements != 0 ? 1 : 0);
}

/// One tensor as the user names it.
struct tensor_spec {
  std::string name{};
  std::vector<std::uint64_t> shape{};  ///< empty: a scalar, one element
  dtype type = dtype::bfloat16;        ///< of the parameter and its gradient: float32 or bfloat16
  std::uint32_t group = 0;             ///< which hyper-parameters drive it
};

/// A pure function of the list: the same on every rank, whatever tiers, chunks and ranks there are.
/// Threads: immutable.
class parameter_layout {
 public:
  parameter_layout() = default;
  /// Errors  errc::layout_mismatch naming the tensor: empty or repeated name, dtype that is no parameter type, size over 64 bits.
  explicit parameter_layout(std::vector<tensor_spec> tensors) : tensors_(std::move(tensors)) {
    places_.reserve(tensors_.size());
    std::uint64_t block = 0;
    for (std::size_t i = 0; i < tensors_.size(); ++i) {
      tensor_spec const& tensor = tensors_[i];
      if (tensor.name.empty()) refuse("tensor " + std::to_string(i), "has no name");
      if (!index_.emplace(tensor.name, i).second) refuse(tensor.name, "appears twice");
      if (tensor.type != dtype::float32 && tensor.type != dtype::bfloat16) {
        refuse(tensor.name, "has dtype " + std::string(name_of(tensor.type)) + "; parameters are F32 or BF16");
      }
      std::uint64_t count = 1;
      std::uint64_t end = 0;
      bool fits = true;
      for (std::uint64_t const extent : tensor.shape) fits = fits && checked_multiply(count, extent, count);
      // 2^56 elements in all: the state of each, tens of bytes, must still fit 64 bits of file offset.
      if (!fits || !checked_add(block, blocks_for(count), end) || end > (std::uint64_t{1} << 46U)) {
        refuse(tensor.name, "has more elements than this library can count");
      }
      places_.push_back({block, count});
      block = end;
      elements_ += count;
    }
    blocks_ = block;
  }

  [[nodiscard]] std::size_t size() const noexcept { return tensors_.size(); }
  [[nodiscard]] tensor_spec const& operator[](std::size_t tensor) const noexcept { return tensors_[tensor]; }
  [[nodiscard]] std::span<tensor_spec const> tensors() const noexcept { return tensors_; }
  /// True elements of a tensor, without padding.
  [[nodiscard]] std::uint64_t elements(std::size_t tensor) const noexcept { return places_[tensor].elements; }
  [[nodiscard]] std::uint64_t first_block(std::size_t tensor) const noexcept { return places_[tensor].block; }
  /// True elements of all tensors.
  [[nodiscard]] std::uint64_t elements() const noexcept { return elements_; }
  /// Blocks of all tensors: the length of the flat space.
  [[nodiscard]] std::uint64_t blocks() const noexcept { return blocks_; }
  [[nodiscard]] std::optional<std::size_t> find(std::string_view name) const {
    auto const found = index_.find(std::string(name));
    if (found == index_.end()) return std::nullopt;
    return found->second;
  }
  /// Bytes of all parameters in their own types, without padding.
  [[nodiscard]] bytes parameter_bytes() const noexcept {
    bytes sum{};
    for (std::size_t i = 0; i < tensors_.size(); ++i) sum += places_[i].elements * size_of(tensors_[i].type);
    return sum;
  }
  /// One more than the largest group number; 0 when there are no tensors.
  [[nodiscard]] std::uint64_t groups() const noexcept {
    std::uint64_t most = 0;
    for (auto const& tensor : tensors_) most = tensor.group >= most ? std::uint64_t{tensor.group} + 1 : most;
    return most;
  }
  /// FNV-1a over names, shapes, dtypes and groups, in order: equal layouts have equal hashes.
  [[nodiscard]] std::uint64_t hash() const noexcept {
    std::uint64_t h = 0xcbf29ce484222325U;
    auto const byte = [&h](std::uint8_t value) { h = (h ^ value) * 0x100000001b3U; };
    auto const word = [&byte](std::uint64_t value) {
      for (unsigned i = 0; i < 8; ++i) byte(static_cast<std::uint8_t>(value >> (8 * i)));
    };
    for (auto const& tensor : tensors_) {
      word(tensor.name.size());
      for (char const c : tensor.name) byte(static_cast<std::uint8_t>(c));
      word(tensor.shape.size());
      for (std::uint64_t const extent : tensor.shape) word(extent);
      byte(static_cast<std::uint8_t>(tensor.type));
      word(tensor.group);
    }
    return h;
  }

 private:
  [[noreturn]] static void refuse(std::string const& name, std::string const& why) {
    throw error{errc::layout_mismatch, {.where = "parameter_layout", .detail = "tensor " + name + " " + why}};
  }
  struct place {
    std::uint64_t block;
    std::uint64_t elements;
  };
  std::vector<tensor_spec> tensors_{};
  std::vector<place> places_{};
  std::unordered_map<std::string, std::size_t> index_{};
  std::uint64_t elements_ = 0;
  std::uint64_t blocks_ = 0;
};

}  // namespace spillway::inline v0
