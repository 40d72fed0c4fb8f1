// SPDX-License-Identifier: Apache-2.0
/// The one place where gradients wait for their update, in host memory, narrow as they came.
#pragma once

#include <spillway/core/error.hpp>
#include <spillway/core/exact_arithmetic.hpp>
#include <spillway/core/f32.hpp>
#include <spillway/device/device_concept.hpp>
#include <spillway/execution/thread_pool.hpp>
#include <spillway/io/huge_buffer.hpp>
#include <spillway/layout/parameter_layout.hpp>
#include <spillway/optimizer/gradient_norm.hpp>

#include <algorithm>
#include <cstdint>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

namespace spillway::inline v0 {

/// Where the elements of each tensor start in one flat host buffer, at cache lines.
class tensor_offsets {
 public:
  /// `wide`: four bytes an element whatever the type.
  tensor_offsets(parameter_layout const& layout, bool wide) {
    starts_.reserve(layout.size());
    for (std::size_t i = 0; i < layout.size(); ++i) {
      starts_.push_back(total_.count);
      total_ += round_up(layout.elements(i) * (wide ? 4_B : size_of(layout[i].type)), 64_B);
    }
  }
  [[nodiscard]] std::uint64_t operator[](std::size_t tensor) const noexcept { return starts_[tensor]; }
  [[nodiscard]] bytes total() const noexcept { return total_; }

 private:
  std::vector<std::uint64_t> starts_{};
  bytes total_{};
};

/// Host memory that the gradients of this layout take.
[[nodiscard]] inline bytes gradient_store_bytes(parameter_layout const& layout, unsigned micro_batches) {
  return tensor_offsets(layout, false).total() + (micro_batches > 1 ? tensor_offsets(layout, true).total() : bytes{});
}

/// Narrow gradients of one micro-batch, and with several an fp32 sum of those before: folded in the order in which they came.
/// Threads: one thread at a time.
template <Device D>
class gradient_store {
 public:
  gradient_store(parameter_layout const& layout, D& device, unsigned micro_batches)
      : layout_(&layout),
        device_(&device),
        micro_batches_(micro_batches),
        narrow_at_(layout, false),
        wide_at_(layout, true),
        narrow_(narrow_at_.total()),
        wide_(micro_batches > 1 ? wide_at_.total() : bytes{}),
        tensors_(layout.size()),
        stream_(device.make_stream()) {}

  /// Take one tensor's gradient of one micro-batch from device memory, once `ready` is done. Returns at once with the event
  /// after which the source may be overwritten.
  /// Errors  errc::invalid_option for more micro-batches than planned.
  typename D::event accumulate(std::size_t tensor, std::byte const* gradient, typename D::event const& ready) {
    entry& e = tensors_[tensor];
    if (e.batches == micro_batches_) {
      throw error{errc::invalid_option,
                  {.where = "gradient_store accumulate",
                   .detail = "tensor " + (*layout_)[tensor].name + " got more micro-batches than the " +
                             std::to_string(micro_batches_) + " of pipeline_options.micro_batches"}};
    }
    if (e.batches > 0) {
      e.landed.wait();
      fold(tensor);
    }
    bytes const size = layout_->elements(tensor) * size_of((*layout_)[tensor].type);
    device_->wait(stream_, ready);
    device_->copy_to_host(stream_, {narrow_.data() + narrow_at_[tensor], size.count}, gradient);
    e.landed = device_->record(stream_);
    e.unfolded = true;
    ++e.batches;
    moved_ += size;
    return e.landed;
  }

  [[nodiscard]] bool present(std::size_t tensor) const noexcept { return tensors_[tensor].batches > 0; }
  [[nodiscard]] bool any() const noexcept {
    for (entry const& e : tensors_) {
      if (e.batches > 0) return true;
    }
    return false;
  }
  /// After settle(): the gradient of a present tensor and its type.
  [[nodiscard]] std::byte const* data(std::size_t tensor) const noexcept {
    return summed(tensor) ? wide_.data() + wide_at_[tensor] : narrow_.data() + narrow_at_[tensor];
  }
  [[nodiscard]] dtype type(std::size_t tensor) const noexcept {
    return summed(tensor) ? dtype::float32 : (*layout_)[tensor].type;
  }

  /// Wait for every copy and finish the sums.
  void settle() {
    stream_.wait();
    for (std::size_t t = 0; t < tensors_.size(); ++t) {
      if (tensors_[t].batches > 1) fold(t);
    }
  }
  /// Squares and non-finite count of everything present. Pre: settled.
  [[nodiscard]] gradient_sum sum(thread_pool& pool) const {
    // Pieces of 64 blocks, claimed by any thread: the sum is exact, so the order does not matter.
    constexpr std::uint64_t grain = 64;
    std::uint64_t pieces = 0;
    for (std::size_t t = 0; t < tensors_.size(); ++t) pieces += pieces_of(t, grain);
    gradient_sum total;
    std::mutex guard;
    pool.run(pieces, [&](std::size_t piece) {
      std::size_t t = 0;
      for (; piece >= pieces_of(t, grain); ++t) piece -= pieces_of(t, grain);
      gradient_sum part;
      std::uint64_t const last = std::min(layout_->elements(t), (piece + 1) * grain * block_elements);
      for (std::uint64_t e = piece * grain * block_elements; e < last; e += block_elements) {
        std::uint64_t const count = std::min(block_elements, last - e);
        if (type(t) == dtype::bfloat16) {
          add_block(part, reinterpret_cast<bf16 const*>(data(t)) + e, count);
        } else {
          add_block(part, reinterpret_cast<float const*>(data(t)) + e, count);
        }
      }
      std::lock_guard const lock(guard);
      total += part;
    });
    return total;
  }
  /// Forget all gradients; bytes moved since the last clear.
  bytes clear() noexcept {
    for (entry& e : tensors_) e.batches = 0, e.has_sum = e.unfolded = false;
    return std::exchange(moved_, bytes{});
  }
  [[nodiscard]] bytes held() const noexcept { return narrow_.size() + wide_.size(); }

 private:
  struct entry {
    unsigned batches = 0;
    bool has_sum = false;
    bool unfolded = false;  // the narrow gradient is not yet part of the sum: a step may settle, fail and settle again
    typename D::event landed{};
  };
  [[nodiscard]] bool summed(std::size_t tensor) const noexcept { return tensors_[tensor].batches > 1; }
  [[nodiscard]] std::uint64_t pieces_of(std::size_t t, std::uint64_t grain) const noexcept {
    return present(t) ? (blocks_for(layout_->elements(t)) + grain - 1) / grain : 0;
  }
  // The first narrow gradient becomes the sum, later ones are added.
  void fold(std::size_t tensor) noexcept {
    if (!std::exchange(tensors_[tensor].unfolded, false)) return;
    float_environment const exact;
    auto* const sum = reinterpret_cast<float*>(wide_.data() + wide_at_[tensor]);
    bool const first = !std::exchange(tensors_[tensor].has_sum, true);
    auto const each = [&](auto const* narrow) {
      for (std::uint64_t i = 0; i < layout_->elements(tensor); ++i) {
        f32 const g = f32::load(narrow + i);
        (first ? g : f32::load(sum + i) + g).store(sum + i);
      }
    };
    std::byte const* const from = narrow_.data() + narrow_at_[tensor];
    if ((*layout_)[tensor].type == dtype::bfloat16) {
      each(reinterpret_cast<bf16 const*>(from));
    } else {
      each(reinterpret_cast<float const*>(from));
    }
  }

  parameter_layout const* layout_;
  D* device_;
  unsigned micro_batches_;
  tensor_offsets narrow_at_;
  tensor_offsets wide_at_;
  huge_buffer narrow_;
  huge_buffer wide_;
  std::vector<entry> tensors_;
  bytes moved_{};
  typename D::stream stream_;  // last: it drains before the memory that it writes to goes
};

}  // namespace spillway::inline v0
