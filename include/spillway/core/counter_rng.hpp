// SPDX-License-Identifier: Apache-2.0
/// Random numbers that are a pure function of where one is: nothing to warm up, three words to save.
#pragma once

#include <spillway/core/config.hpp>

#include <cstdint>

namespace spillway::inline v0 {

/// Four random words, or the counter they come from; lowest first.
struct philox_words {
  std::uint32_t word[4];
};

/// Philox4x32-10: four random words from a 128-bit counter and a 64-bit key.
/// Errors   none; noexcept.
/// Threads  safe.
/// Cost     20 multiplications.
/// Source   Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011; test vectors of Random123.
[[nodiscard]] SPILLWAY_HOST_DEVICE constexpr philox_words philox4x32(philox_words counter, std::uint64_t key) noexcept {
  auto& c = counter.word;
  auto k0 = static_cast<std::uint32_t>(key);
  auto k1 = static_cast<std::uint32_t>(key >> 32U);
  for (int round = 0; round < 10; ++round) {
    std::uint64_t const a = std::uint64_t{0xD2511F53U} * c[0];
    std::uint64_t const b = std::uint64_t{0xCD9E8D57U} * c[2];
    c[0] = static_cast<std::uint32_t>(b >> 32U) ^ c[1] ^ k0;
    c[1] = static_cast<std::uint32_t>(b);
    c[2] = static_cast<std::uint32_t>(a >> 32U) ^ c[3] ^ k1;
    c[3] = static_cast<std::uint32_t>(a);
    k0 += 0x9E3779B9U;
    k1 += 0xBB67AE85U;
  }
  return counter;
}

/// A uniform random bit generator whose whole state is (seed, stream, counter): draw n of a stream is the same however one came
/// there. Streams of one seed are independent; `counter` counts draws, so resuming is storing three numbers and skipping is an
/// addition. Standard distributions over it differ between standard libraries: compute from the words where bits matter.
/// Threads  one at a time; copies are independent.
struct counter_rng {
  using result_type = std::uint32_t;

  std::uint64_t seed = 0;
  std::uint64_t stream = 0;
  std::uint64_t counter = 0;  ///< words drawn

  [[nodiscard]] static constexpr result_type min() noexcept { return 0; }
  [[nodiscard]] static constexpr result_type max() noexcept { return 0xffffffffU; }

  /// The word that draw number `n` of this stream returns.
  [[nodiscard]] SPILLWAY_HOST_DEVICE constexpr result_type at(std::uint64_t n) const noexcept {
    std::uint64_t const block = n / 4;
    philox_words const from{{static_cast<std::uint32_t>(block), static_cast<std::uint32_t>(block >> 32U),
                             static_cast<std::uint32_t>(stream), static_cast<std::uint32_t>(stream >> 32U)}};
    return philox4x32(from, seed).word[n % 4];
  }
  SPILLWAY_HOST_DEVICE constexpr result_type operator()() noexcept { return at(counter++); }
  constexpr void discard(std::uint64_t n) noexcept { counter += n; }

  /// Declares the state to checkpoints, by name.
  template <class Visitor>
  void visit_state(Visitor& visit) {
    visit("seed", seed);
    visit("stream", stream);
    visit("counter", counter);
  }
  friend constexpr bool operator==(counter_rng const&, counter_rng const&) noexcept = default;
};

}  // namespace spillway::inline v0
