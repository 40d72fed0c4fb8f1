// SPDX-License-Identifier: Apache-2.0
// A tier of one's own: no base class, no registration, no macro. This one notes the largest request that it ever saw.
#include <spillway/spillway.hpp>
#include <spillway/testing/memory_tier_conformance.hpp>

#include <algorithm>
#include <cstdio>

// [readme]
class noting_tier {
 public:
  static constexpr spillway::tier_traits traits{};  // bytes are moved, not addressed
  explicit noting_tier(spillway::host_tier upstream) : upstream_(std::move(upstream)) {}

  [[nodiscard]] spillway::region allocate(spillway::bytes n) { return upstream_.allocate(n); }
  void deallocate(spillway::region r) noexcept { upstream_.deallocate(r); }
  [[nodiscard]] auto read(spillway::region r, spillway::bytes offset, std::span<std::byte> to) {
    largest_ = std::max(largest_, to.size());
    return upstream_.read(r, offset, to);
  }
  [[nodiscard]] auto write(spillway::region r, spillway::bytes offset, std::span<std::byte const> from) {
    largest_ = std::max(largest_, from.size());
    return upstream_.write(r, offset, from);
  }
  [[nodiscard]] auto flush() { return upstream_.flush(); }
  [[nodiscard]] spillway::bytes capacity() const noexcept { return upstream_.capacity(); }
  [[nodiscard]] std::size_t largest() const noexcept { return largest_; }

 private:
  spillway::host_tier upstream_;
  std::size_t largest_ = 0;
};
static_assert(spillway::MemoryTier<noting_tier>);
// [/readme]

int main() {
  using namespace spillway;
  // What a compiler can't check, the library checks for you: an empty list is a pass.
  noting_tier checked(host_tier(64_MiB));
  auto const broken = testing::check_memory_tier(checked);
  for (auto const& law : broken) std::printf("broken law: %s\n", law.c_str());
  std::printf("largest request: %zu bytes\n", checked.largest());
  return broken.empty() && checked.largest() > 0 ? 0 : 1;
}
