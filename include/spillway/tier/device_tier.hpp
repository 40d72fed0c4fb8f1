// SPDX-License-Identifier: Apache-2.0
/// The MemoryTier in device memory, reached by copies over the link.
#pragma once

#include <spillway/core/config.hpp>
#include <spillway/core/error.hpp>
#include <spillway/device/device_concept.hpp>
#include <spillway/tier/memory_tier_concept.hpp>

#include <cstddef>
#include <map>
#include <memory>
#include <span>
#include <system_error>
#include <utility>

namespace spillway::inline v0 {

/// State that stays on the accelerator, within the device's own budget. `device` outlives the tier.
/// Threads: allocate, deallocate: one at a time; read and write: as the device's streams.
template <Device D>
class device_tier {
 public:
  static constexpr tier_traits traits{.device_addressable = true};

  /// The copy of one read or write.
  class token {
   public:
    explicit token(typename D::event done) noexcept : done_(std::move(done)) {}
    token(token&& other) noexcept : done_(std::exchange(other.done_, typename D::event{})) {}
    token& operator=(token&& other) noexcept {
      if (this != &other) {
        settle();
        done_ = std::exchange(other.done_, typename D::event{});
      }
      return *this;
    }
    ~token() { settle(); }
    [[nodiscard]] bool poll() noexcept { return done_.done(); }
    void wait() {
      try {
        done_.wait();
      } catch (std::system_error const& failed) {
        code_ = failed.code();
        throw;
      }
    }
    [[nodiscard]] std::error_code status() const noexcept { return code_; }

   private:
    void settle() noexcept {
      try {
        done_.wait();
      } catch (std::system_error const& failed) {
        code_ = failed.code();
      }
    }
    typename D::event done_;
    std::error_code code_{};
  };

  /// A stream a direction, so that both directions of the link work at once.
  explicit device_tier(D& device) : state_(std::make_unique<state>(device)) {}

  /// Errors  capacity_exceeded over the device's budget.
  [[nodiscard]] region allocate(bytes n) {
    device_block const block = n.count == 0 ? device_block{} : state_->device->allocate(n);
    std::uint64_t const id = state_->next++;
    state_->blocks.emplace(id, block);
    return {id, n};
  }
  void deallocate(region r) noexcept {
    auto const found = state_->blocks.find(r.id);
    SPILLWAY_EXPECTS(found != state_->blocks.end());
    if (r.size.count != 0) state_->device->deallocate(found->second);
    state_->blocks.erase(found);
  }
  [[nodiscard]] token read(region r, bytes offset, std::span<std::byte> to) {
    std::byte const* const from = address(r, offset, to.size());
    if (!to.empty()) state_->device->copy_to_host(state_->out, to, from);
    return token(state_->device->record(state_->out));
  }
  [[nodiscard]] token write(region r, bytes offset, std::span<std::byte const> from) {
    std::byte* const to = address(r, offset, from.size());
    if (!from.empty()) state_->device->copy_to_device(state_->in, to, from);
    return token(state_->device->record(state_->in));
  }
  [[nodiscard]] token flush() { return token(state_->device->record(state_->in)); }
  [[nodiscard]] bytes capacity() const noexcept { return state_->device->capacity(); }
  /// Device address of a region. Only device tasks may use it.
  [[nodiscard]] std::byte* data(region r) const noexcept { return address(r, bytes{}, 0); }

 private:
  struct state {
    explicit state(D& d) : device(&d), in(d.make_stream()), out(d.make_stream()) {}
    D* device;
    std::map<std::uint64_t, device_block> blocks{};
    std::uint64_t next = 1;
    typename D::stream in;
    typename D::stream out;
  };
  [[nodiscard]] std::byte* address(region r, bytes offset, std::size_t size) const noexcept {
    auto const found = state_->blocks.find(r.id);
    SPILLWAY_EXPECTS(found != state_->blocks.end() && offset <= r.size && size <= (r.size - offset).count);
    return found->second.data == nullptr ? nullptr : found->second.data + offset.count;
  }
  std::unique_ptr<state> state_;
};

}  // namespace spillway::inline v0
