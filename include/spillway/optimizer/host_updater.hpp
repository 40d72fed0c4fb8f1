// SPDX-License-Identifier: Apache-2.0
/// Updates chunks in host memory, one pass, several threads.
#pragma once

#include <algorithm>
#include <array>
#include <memory>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <spillway/core/error.hpp>
#include <spillway/core/lanes.hpp>
#include <spillway/execution/thread_pool.hpp>
#include <spillway/optimizer/adamw_kernel.hpp>
#include <spillway/optimizer/chunk_updater_concept.hpp>
#include <spillway/optimizer/kernel_check.hpp>
#include <spillway/optimizer/stored.hpp>

namespace spillway::inline v0 {

/// `Kernel` is an OptimizerKernel, or one inside `stored<...>`.
/// One pass: narrow gradient in, times the scale, update in fp32 registers, state out, narrow parameter out.
/// Threads: one call at a time.
template <class Kernel = adamw_kernel>
class host_updater {
  using storage = detail::storage_of<Kernel>;
  using rule = typename storage::kernel;
  static constexpr std::size_t array_count = rule::arrays.size();
  static_assert(rule::passes == 1, "host_updater runs kernels of one pass");
  // Elements of one task: small enough to balance threads, large enough that claiming one costs nothing.
  static constexpr std::uint64_t grain = 32 * block_elements;

 public:
  /// The same hyper-parameters for every group; `pool`: null makes one of its own, a thread for each usable processor.
  /// Errors  errc::numerics_altered when this build computes other bits than the contract promises.
  explicit host_updater(Kernel kernel = {}, std::shared_ptr<thread_pool> pool = nullptr)
      : host_updater(std::vector<Kernel>{std::move(kernel)}, std::move(pool)) {}
  /// One kernel a group, in order of the group numbers.
  explicit host_updater(std::vector<Kernel> by_group, std::shared_ptr<thread_pool> pool = nullptr)
      : kernels_(std::move(by_group)), pool_(pool ? std::move(pool) : std::make_shared<thread_pool>()) {
    if (kernels_.empty()) throw error{errc::invalid_option, {.where = "host_updater", .detail = "no kernel for any group"}};
    if constexpr (rule::unit == granularity::element) check_numerics<rule>();
    schema_ = {.kernel = std::string(rule::name),
               .arrays = storage::arrays(),
               .by_group = std::vector<granularity>(std::max<std::size_t>(kernels_.size(), most_groups), rule::unit),
               .passes = rule::passes,
               .rule = storage::rule,
               .needs_parameter = storage::needs_parameter,
               .on_device = false};
  }

  [[nodiscard]] updater_schema const& schema() const noexcept { return schema_; }
  [[nodiscard]] unsigned threads() const noexcept { return pool_->threads(); }

  /// Errors  errc::invalid_option when a run's group has no kernel.
  void update(chunk_view const& chunk, update_scalars const& scalars, native_stream = {}) {
    for (run_view const& run : chunk.runs) static_cast<void>(kernel_for(run.group));
    if constexpr (rule::unit == granularity::element) {
      for_each_piece(chunk, [&](run_view const& run, std::uint64_t first, std::uint64_t last) {
        if (run.gradient == nullptr) return;
        auto const constants = kernel_for(run.group).prepare({run.step, scalars.learning_rate_factor});
        for_types(run, [&]<class G, class P>() {
          update_elements<G, P>(chunk, run, constants, scalars.gradient_scale, first, last);
        });
      });
    } else {
      float_environment const exact;
      for (run_view const& run : chunk.runs) {
        if (run.gradient == nullptr) continue;
        for_types(run, [&]<class G, class P>() { update_whole<G, P>(chunk, run, scalars); });
      }
    }
  }

  void initialise(chunk_view const& chunk, std::span<float const* const> masters, native_stream = {}) {
    for_each_piece(chunk, [&](run_view const& run, std::uint64_t first, std::uint64_t last) {
      float const* const master = masters[static_cast<std::size_t>(&run - chunk.runs.data())];
      if (run.parameter_type == dtype::bfloat16) {
        initialise_elements<bf16>(chunk, run, master, first, last);
      } else {
        initialise_elements<float>(chunk, run, master, first, last);
      }
    });
  }

 private:
  static constexpr std::size_t most_groups = 64;  // groups that a schema speaks of when one kernel serves all

  rule const& kernel_for(std::uint32_t group) const {
    if (kernels_.size() == 1) return storage::bare(kernels_[0]);
    if (group >= kernels_.size()) {
      throw error{errc::invalid_option, {.where = "host_updater", .detail = "group " + std::to_string(group) + " has no kernel: " +
                                                                            std::to_string(kernels_.size()) + " were given"}};
    }
    return storage::bare(kernels_[group]);
  }

  // body<gradient type, parameter type>(), by what the run says.
  template <class Body>
  static void for_types(run_view const& run, Body const& body) {
    bool const narrow_parameter = run.parameter_type == dtype::bfloat16;
    if (run.gradient_type == dtype::bfloat16) {
      narrow_parameter ? body.template operator()<bf16, bf16>() : body.template operator()<bf16, float>();
    } else {
      narrow_parameter ? body.template operator()<float, bf16>() : body.template operator()<float, float>();
    }
  }

  // body(run, first, last) over all runs in pieces of at most `grain` elements, several at a time.
  template <class Body>
  void for_each_piece(chunk_view const& chunk, Body const& body) {
    std::size_t pieces = 0;
    for (run_view const& run : chunk.runs) pieces += pieces_of(run);
    pool_->run(pieces, [&](std::size_t piece) {
      for (run_view const& run : chunk.runs) {
        std::size_t const here = pieces_of(run);
        if (piece < here) return body(run, piece * grain, std::min(run.count, (piece + 1) * grain));
        piece -= here;
      }
    });
  }
  static std::size_t pieces_of(run_view const& run) noexcept { return (run.count + grain - 1) / grain; }

  template <std::size_t I>
  using codec = std::tuple_element_t<I, typename storage::codecs>;
  using every_array = std::make_index_sequence<array_count>;

  template <class V, class G, class P, std::size_t... I>
  SPILLWAY_ALWAYS_INLINE static void update_one(chunk_view const& chunk, run_view const& run, typename rule::constants const& c,
                                                V scale, std::uint64_t e, std::index_sequence<I...>) noexcept {
    P* const parameter = reinterpret_cast<P*>(run.parameter) + e;
    std::uint64_t const at = run.offset + e;
    V narrow{};
    if constexpr (storage::needs_parameter) narrow = V::load(parameter);
    V const gradient = V::load(reinterpret_cast<G const*>(run.gradient) + e) * scale;
    V state[array_count] = {codec<I>::template load<V>(chunk.arrays[I], at, narrow)...};
    rule::update(c, gradient, state);
    (codec<I>::template store<V>(chunk.arrays[I], at, state[I]), ...);
    state[0].template store<storage::rule>(parameter);
  }

  template <class G, class P>
  static void update_elements(chunk_view const& chunk, run_view const& run, typename rule::constants const& c, float scale,
                              std::uint64_t first, std::uint64_t last) noexcept {
    // With five streams the hardware prefetcher alone does not reach memory speed; 2 KiB ahead does.
    constexpr std::uint64_t ahead = 512;
    auto const prefetch = [&]<std::size_t... I>(std::uint64_t e, std::index_sequence<I...>) {
      __builtin_prefetch(run.gradient + (e + ahead) * sizeof(G));
      (__builtin_prefetch(chunk.arrays[I] + (run.offset + e + ahead) * codec<I>::bytes_per_block / block_elements, 1), ...);
    };
    std::uint64_t e = first;
    for (lanes const wide{scale}; e + lanes::width <= last; e += lanes::width) {
      prefetch(e, every_array{});
      update_one<lanes, G, P>(chunk, run, c, wide, e, every_array{});
    }
    for (f32 const one{scale}; e < last; ++e) update_one<f32, G, P>(chunk, run, c, one, e, every_array{});
  }

  template <class G, class P>
  void update_whole(chunk_view const& chunk, run_view const& run, update_scalars const& scalars) {
    gradient_.resize(std::max<std::size_t>(gradient_.size(), run.count));
    G const* const gradient = reinterpret_cast<G const*>(run.gradient);
    for (std::uint64_t e = 0; e < run.count; ++e) (f32::load(gradient + e) * f32{scalars.gradient_scale}).store(&gradient_[e]);
    std::array<std::span<float>, array_count> state;
    for (std::size_t a = 0; a < array_count; ++a) {
      state[a] = {reinterpret_cast<float*>(chunk.arrays[a]) + run.offset, run.count};
    }
    auto const constants = kernel_for(run.group).prepare({run.step, scalars.learning_rate_factor});
    rule::update_tensor(constants, run.shape, std::span<float const>{gradient_.data(), run.count}, state);
    P* const parameter = reinterpret_cast<P*>(run.parameter);
    for (std::uint64_t e = 0; e < run.count; ++e) f32{state[0][e]}.template store<storage::rule>(parameter + e);
  }

  template <class T>
  static void initialise_elements(chunk_view const& chunk, run_view const& run, float const* master, std::uint64_t first,
                                  std::uint64_t last) noexcept {
    auto const each = [&]<std::size_t... I>(std::uint64_t e, std::index_sequence<I...>) {
      f32 const value = f32::load(master + e);
      (codec<I>::template store<f32>(chunk.arrays[I], run.offset + e, I == 0 ? value : f32{0.0F}), ...);
      value.template store<storage::rule>(reinterpret_cast<T*>(run.parameter) + e);
    };
    for (std::uint64_t e = first; e < last; ++e) each(e, every_array{});
  }

  std::vector<Kernel> kernels_;
  std::shared_ptr<thread_pool> pool_;
  updater_schema schema_{};
  std::vector<float> gradient_{};  // of one whole tensor, for kernels that declare whole tensors
};
static_assert(ChunkUpdater<host_updater<adamw_kernel>>);

}  // namespace spillway::inline v0
