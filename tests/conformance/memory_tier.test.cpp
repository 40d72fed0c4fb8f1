// SPDX-License-Identifier: Apache-2.0
#include <spillway/io/thread_engine.hpp>
#include <spillway/testing/memory_tier_conformance.hpp>
#include <spillway/tier/counting_tier.hpp>
#include <spillway/tier/file_tier.hpp>
#include <spillway/tier/host_tier.hpp>
#include <spillway/tier/limiting_tier.hpp>

#include <algorithm>
#include <cstddef>
#include <span>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "support/catch.hpp"
#include "support/scratch.hpp"
#include "support/transforming_tier.hpp"

using namespace spillway::literals;
using spillway::bytes;
using spillway::region;
using spillway::testing::check_memory_tier;

namespace {
std::vector<std::string> const none;
spillway::file_tier<> spill(test::scratch const& folder, spillway::file_tier_options options = {}) {
  options.directory = folder.path();
  return {spillway::thread_engine<>{{.threads = 4}}, options};
}
}  // namespace

TEST_CASE("memory tier conformance: host_tier") {
  spillway::host_tier tier{4_MiB};
  CHECK(check_memory_tier(tier) == none);
}

TEST_CASE("memory tier conformance: file_tier") {
  test::scratch const folder;
  auto tier = spill(folder, {.directory = {}, .capacity = 4_MiB});
  CHECK(check_memory_tier(tier) == none);
}

TEST_CASE("memory tier conformance: file_tier, buffered") {
  test::scratch const folder;
  auto tier = spill(folder, {.directory = {}, .direct = spillway::direct_io::off});
  CHECK(check_memory_tier(tier) == none);
}

TEST_CASE("memory tier conformance: limiting_tier") {
  spillway::limiting_tier tier{spillway::host_tier{1_GiB}, 4_MiB};
  CHECK(check_memory_tier(tier) == none);
}

TEST_CASE("memory tier conformance: counting_tier") {
  test::scratch const folder;
  spillway::counting_tier tier{spill(folder)};
  CHECK(check_memory_tier(tier) == none);
}

TEST_CASE("memory tier conformance: a user's tier that encrypts, in memory and in files") {
  test::transforming_tier in_memory{spillway::host_tier{4_MiB}};
  CHECK(check_memory_tier(in_memory) == none);
  test::scratch const folder;
  test::transforming_tier in_files{spill(folder)};
  CHECK(check_memory_tier(in_files) == none);
}

TEST_CASE("transforming_tier: what lies in the medium is not what was written") {
  test::transforming_tier tier{spillway::host_tier{1_MiB}};
  region const r = tier.allocate(4_KiB);
  std::vector<std::byte> const zeros(4096);
  tier.write(r, {}, zeros).wait();
  std::span const stored{tier.inner().data(r), zeros.size()};
  CHECK(std::count(stored.begin(), stored.end(), std::byte{0}) < 100);
  tier.deallocate(r);
}

namespace {
/// Tiers that break one law each: the suite must see it.
struct base : spillway::host_tier {
  base() : host_tier(4_MiB) {}
};
struct tier_that_overlaps : base {
  region last{};
  region allocate(bytes n) {
    if (n == last.size) return last;
    return last = base::allocate(n);
  }
  void deallocate(region r) noexcept {
    if (r != last) base::deallocate(r);
  }
};
struct tier_that_ignores_the_offset : base {
  auto write(region r, bytes, std::span<std::byte const> from) noexcept { return base::write(r, {}, from); }
};
struct tier_that_drops_the_last_byte : base {
  auto read(region r, bytes offset, std::span<std::byte> to) noexcept {
    return base::read(r, offset, to.first(to.empty() ? 0 : to.size() - 1));
  }
};
struct tier_that_leaks : base {
  void deallocate(region) noexcept {}
};
struct tier_without_a_limit : base {
  region allocate(bytes n) { return n > 4_MiB ? region{0, n} : base::allocate(n); }
  void deallocate(region r) noexcept {
    if (r.id != 0) base::deallocate(r);
  }
};
struct tier_that_rounds_sizes : base {
  region allocate(bytes n) {
    region r = base::allocate(n);
    r.size = spillway::round_up(r.size, 64_B);
    return r;
  }
};
struct tier_with_a_copy_for_data : base {
  std::vector<std::byte> copy = std::vector<std::byte>(1U << 20U);
  std::byte* data(region) noexcept { return copy.data(); }
};
/// Its token ends the write only when it is waited for, not when it is destroyed.
struct tier_whose_tokens_do_not_own : base {
  struct token {
    spillway::host_tier* tier = nullptr;
    region r{};
    bytes offset{};
    std::span<std::byte const> from{};
    bool poll() noexcept {
      wait();
      return true;
    }
    void wait() noexcept {
      if (auto* const t = std::exchange(tier, nullptr)) static_cast<void>(t->write(r, offset, from));
    }
    [[nodiscard]] static std::error_code status() noexcept { return {}; }
    token(spillway::host_tier* t, region at, bytes o, std::span<std::byte const> f)
        : tier(t), r(at), offset(o), from(f) {}
    token(token&& other) noexcept
        : tier(std::exchange(other.tier, nullptr)), r(other.r), offset(other.offset), from(other.from) {}
    token& operator=(token&& other) noexcept {
      tier = std::exchange(other.tier, nullptr), r = other.r, offset = other.offset, from = other.from;
      return *this;
    }
    ~token() = default;
  };
  token write(region r, bytes offset, std::span<std::byte const> from) { return {this, r, offset, from}; }
};
}  // namespace

TEMPLATE_TEST_CASE("memory tier conformance: a tier that breaks a law is seen", "", tier_that_overlaps,
                   tier_that_ignores_the_offset, tier_that_drops_the_last_byte, tier_that_leaks, tier_without_a_limit,
                   tier_that_rounds_sizes, tier_with_a_copy_for_data, tier_whose_tokens_do_not_own) {
  TestType tier;
  CHECK(check_memory_tier(tier) != none);
}
