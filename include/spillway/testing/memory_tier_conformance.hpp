// SPDX-License-Identifier: Apache-2.0
/// What a MemoryTier promises beyond what the compiler checks, as a list of broken laws. For users' own tiers too.
#pragma once

#include <spillway/core/bytes.hpp>
#include <spillway/core/error.hpp>
#include <spillway/io/huge_buffer.hpp>
#include <spillway/testing/detail/law_list.hpp>
#include <spillway/tier/memory_tier_concept.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace spillway::inline v0::testing {

namespace detail {

template <MemoryTier Tier>
class memory_tier_check {
 public:
  explicit memory_tier_check(Tier& tier) : tier_(tier) {}

  [[nodiscard]] std::vector<std::string> run() {
    laws_.law("traits", [this] { traits(); });
    laws_.law("sizes", [this] { sizes(); });
    laws_.law("parts", [this] { parts(); });
    laws_.law("many at once", [this] { many_at_once(); });
    laws_.law("tokens", [this] { tokens(); });
    laws_.law("dropped tokens", [this] { dropped_tokens(); });
    laws_.law("flush", [this] { flush(); });
    laws_.law("capacity", [this] { capacity(); });
    laws_.law("moves", [this] { moves(); });
    if constexpr (HostAddressableTier<Tier>) laws_.law("data", [this] { data(); });
    return laws_.take();
  }

 private:
  static constexpr std::uint64_t unit = Tier::traits.alignment.count;
  static constexpr std::uint64_t large = round_up(64U << 10U, std::max<std::uint64_t>(unit, 1));

  struct held_region {
    held_region(Tier& of, bytes n) : tier(&of), r(of.allocate(n)) {}
    held_region(held_region const&) = delete;
    held_region& operator=(held_region const&) = delete;
    ~held_region() { tier->deallocate(r); }
    Tier* tier;
    region r;
  };

  static std::span<std::byte> pattern(huge_buffer const& buffer, std::uint64_t seed) {
    fill_pattern(buffer.span(), seed);
    return buffer.span();
  }
  void read_back(region r, bytes offset, std::span<std::byte const> wanted, std::string const& what) {
    huge_buffer const got{bytes{wanted.size()}};
    auto reading = tier_.read(r, offset, got.span());
    reading.wait();
    laws_.expect(!reading.status(), what + ": status() of a read that did not fail is an error");
    laws_.expect(wanted.empty() || std::memcmp(got.data(), wanted.data(), wanted.size()) == 0,
                 what + ": read gives other bytes than were written");
  }

  void traits() {
    laws_.expect(unit != 0 && (unit & (unit - 1)) == 0, "alignment is not a power of two");
    laws_.expect(!Tier::traits.host_addressable || HostAddressableTier<Tier>,
                 "host_addressable, but there is no data()");
  }
  void sizes() {
    // A transfer may reach the padding of a region's last unit.
    for (std::uint64_t const n : {std::uint64_t{0}, std::uint64_t{1}, unit, unit + 1, 3 * unit - 1, large + 1}) {
      std::string const what = std::to_string(n) + " B";
      held_region held{tier_, bytes{n}};
      laws_.expect(held.r.size.count == n, what + ": allocate gives a region of another size");
      huge_buffer const buffer{bytes{round_up(n, unit)}};
      tier_.write(held.r, {}, pattern(buffer, n)).wait();
      read_back(held.r, {}, buffer.span(), what);
      auto nothing = tier_.read(held.r, {}, {});
      nothing.wait();
      laws_.expect(nothing.poll(), what + ": an empty read is not done after wait()");
    }
  }
  void parts() {
    held_region held{tier_, bytes{8 * unit}};
    huge_buffer const buffer{bytes{8 * unit}};
    auto const whole = pattern(buffer, 1);
    tier_.write(held.r, {}, whole).wait();
    huge_buffer const part{bytes{2 * unit}};
    tier_.write(held.r, bytes{3 * unit}, pattern(part, 2)).wait();
    std::memcpy(buffer.data() + 3 * unit, part.data(), 2 * unit);
    read_back(held.r, {}, whole, "a part was overwritten");
    read_back(held.r, bytes{5 * unit}, whole.subspan(5 * unit, 3 * unit), "a read with an offset");
    held_region other{tier_, bytes{8 * unit}};
    huge_buffer const more{bytes{8 * unit}};
    tier_.write(other.r, {}, pattern(more, 3)).wait();
    read_back(held.r, {}, whole, "another region was written");
  }
  void many_at_once() {
    constexpr std::size_t regions = 4;
    constexpr std::size_t pieces = 8;
    constexpr std::uint64_t piece = round_up(4096, unit);
    using write_token = decltype(tier_.write(region{}, bytes{}, std::span<std::byte const>{}));
    std::vector<huge_buffer> buffers;
    std::vector<write_token> writing;
    std::optional<held_region> held[regions];
    for (std::size_t i = 0; i < regions; ++i) {
      held[i].emplace(tier_, bytes{pieces * piece});
      buffers.emplace_back(bytes{pieces * piece});
      pattern(buffers.back(), 10 + i);
    }
    for (std::size_t k = 0; k < pieces; ++k) {
      for (std::size_t i = 0; i < regions; ++i) {
        writing.push_back(tier_.write(held[i]->r, bytes{k * piece}, buffers[i].span().subspan(k * piece, piece)));
      }
    }
    for (write_token& w : writing) laws_.expect(poll_until_done(w), "poll() of a write did not become true in 30 s");
    for (std::size_t i = 0; i < regions; ++i) read_back(held[i]->r, {}, buffers[i].span(), "many writes in flight");
  }
  void tokens() {
    held_region held{tier_, bytes{large}};
    huge_buffer const buffer{bytes{large}};
    auto writing = tier_.write(held.r, {}, pattern(buffer, 20));
    auto moved = std::move(writing);
    laws_.expect(writing.poll(), "a moved-from token is not done");
    moved.wait();
    laws_.expect(moved.poll() && moved.poll(), "poll() is false after wait()");
    moved.wait();
    laws_.expect(!moved.status(), "status() is an error though wait() did not throw");
    moved = tier_.write(held.r, {}, pattern(buffer, 21));
    moved = tier_.write(held.r, {}, buffer.span());  // assigning to a token ends its operation first
    moved.wait();
    read_back(held.r, {}, buffer.span(), "a token was assigned to");
  }
  void dropped_tokens() {
    held_region held{tier_, bytes{large}};
    huge_buffer const buffer{bytes{large}};
    static_cast<void>(tier_.write(held.r, {}, pattern(buffer, 30)));
    std::vector<std::byte> const written(buffer.span().begin(), buffer.span().end());
    pattern(buffer, 31);  // the write is over: nobody may read this now
    read_back(held.r, {}, written, "a token was destroyed without wait()");
    huge_buffer const target{bytes{large}};
    static_cast<void>(tier_.read(held.r, {}, target.span()));
    laws_.expect(std::memcmp(target.data(), written.data(), large) == 0, "a dropped read was not over with its token");
  }
  void flush() {
    held_region held{tier_, bytes{large}};
    huge_buffer const buffer{bytes{large}};
    auto writing = tier_.write(held.r, {}, pattern(buffer, 40));
    writing.wait();
    tier_.flush().wait();
    tier_.flush().wait();
    read_back(held.r, {}, buffer.span(), "after flush()");
  }
  void capacity() {
    bytes const all = tier_.capacity();
    if (all.count == std::numeric_limits<std::uint64_t>::max()) return;
    bool refused = false;
    try {
      tier_.deallocate(tier_.allocate(bytes{all.count + 1}));
    } catch (error const& failed) {
      refused = failed.code() == errc::capacity_exceeded;
      laws_.expect(failed.about().wanted.count == all.count + 1, "the refusal does not say what was wanted");
      laws_.expect(failed.about().got <= all, "the refusal says that more is left than there is");
    }
    laws_.expect(refused, "a region larger than the capacity is not refused with capacity_exceeded");
    // What was deallocated can be allocated again: more rounds than the capacity holds at once.
    std::uint64_t const rounds = std::min<std::uint64_t>(all.count / large + 1, 1000);
    for (std::uint64_t i = 0; i < rounds; ++i) held_region const held{tier_, bytes{large}};
    laws_.expect(tier_.capacity() == all, "capacity() changed");
  }
  void moves() {
    held_region held{tier_, bytes{large}};
    huge_buffer const buffer{bytes{large}};
    auto writing = tier_.write(held.r, {}, pattern(buffer, 50));
    Tier elsewhere = std::move(tier_);
    writing.wait();
    held.tier = &elsewhere;
    huge_buffer const got{bytes{large}};
    elsewhere.read(held.r, {}, got.span()).wait();
    laws_.expect(std::memcmp(got.data(), buffer.data(), large) == 0, "a region's bytes changed when the tier moved");
    tier_ = std::move(elsewhere);
    held.tier = &tier_;
    read_back(held.r, {}, buffer.span(), "the tier moved there and back");
  }
  void data() {
    held_region held{tier_, bytes{large}};
    huge_buffer const buffer{bytes{large}};
    tier_.write(held.r, {}, pattern(buffer, 60)).wait();
    std::byte* const bytes_in_place = tier_.data(held.r);
    if (bytes_in_place == nullptr) return laws_.expect(false, "data() is null");
    laws_.expect(reinterpret_cast<std::uintptr_t>(bytes_in_place) % unit == 0, "data() is not aligned");
    laws_.expect(std::memcmp(bytes_in_place, buffer.data(), large) == 0, "data() does not show what was written");
    std::memcpy(bytes_in_place, pattern(buffer, 61).data(), large);
    read_back(held.r, {}, buffer.span(), "bytes were changed in place");
  }

  Tier& tier_;
  law_list laws_;
};

}  // namespace detail

/// Tries the laws of MemoryTier on `tier`, which can hold 512 KiB. The broken laws, each with what was seen; empty: it
/// passes.
/// Errors  none of the tier's: what it throws is a broken law.
template <MemoryTier Tier>
[[nodiscard]] std::vector<std::string> check_memory_tier(Tier& tier) {
  return detail::memory_tier_check<Tier>{tier}.run();
}

}  // namespace spillway::inline v0::testing
