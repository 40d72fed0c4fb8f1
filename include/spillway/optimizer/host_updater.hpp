// SPDX-License-Identifier: Apache-2.0
/// Updates chunks in host memory, one pass, several threads.
#pragma once

#include <spillway/core/error.hpp>
#include <spillway/core/lanes.hpp>
#include <spillway/execution/thread_pool.hpp>
#include <spillway/optimizer/adamw_kernel.hpp>
#include <spillway/optimizer/chunk_updater_concept.hpp>
#include <spillway/optimizer/kernel_check.hpp>
#include <spillway/optimizer/stored.hpp>

#include <algorithm>
#include <array>
#include <memory>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

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
  static_assert(ElementKernel<rule> || (TensorKernel<rule> && storage::all_plain),
                "the kernel lacks update(), or update_tensor() with every array stored as float32");
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
    if (kernels_.empty())
      throw error{errc::invalid_option, {.where = "host_updater", .detail = "no kernel for any group"}};
    if constexpr (rule::unit == granularity::element) check_numerics<rule>();
    schema_ = {.kernel = std::string(rule::name),
               .arrays = storage::arrays(),
               .by_group = {rule::unit},
               .passes = rule::passes,
               .rule = storage::rule,
               .needs_parameter = storage::needs_parameter,
               .on_device = false,
               .groups = kernels_.size() == 1 ? 0 : kernels_.size(),
               .scratch_per_element = bytes{rule::unit == granularity::tensor ? sizeof(float) : 0}};
  }

  [[nodiscard]] updater_schema const& schema() const noexcept { return schema_; }
  [[nodiscard]] unsigned threads() const noexcept { return pool_->threads(); }

  /// Errors  errc::invalid_option when a run's group has no kernel.
  void update(chunk_view const& chunk, update_scalars const& scalars, native_stream = {}) {
    check_groups(chunk);
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

  /// Errors  errc::invalid_option when a run's group has no kernel.
  void initialise(chunk_view const& chunk, std::span<float const* const> masters, native_stream = {}) {
    check_groups(chunk);
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
  void check_groups(chunk_view const& chunk) const {
    for (run_view const& run : chunk.runs) static_cast<void>(kernel_for(run.group));
  }
  rule const& kernel_for(std::uint32_t group) const {
    if (kernels_.size() == 1) return storage::bare(kernels_[0]);
    if (group >= kernels_.size()) {
      throw error{errc::invalid_option,
                  {.where = "host_updater",
                   .detail = "group " + std::to_string(group) + " has no kernel: " + std::to_string(kernels_.size()) +
                             " were given"}};
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

  // body(run, first, last) over what lies in each piece of `grain` elements of the chunk, several pieces at a time.
  template <class Body>
  void for_each_piece(chunk_view const& chunk, Body const& body) {
    if (chunk.runs.empty()) return;
    std::uint64_t const end = chunk.runs.back().offset + chunk.runs.back().count;
    pool_->run((end + grain - 1) / grain, [&](std::size_t piece) {
      std::uint64_t const from = piece * grain;
      std::uint64_t const to = from + grain;
      auto const ends_after = [](std::uint64_t at, run_view const& run) { return at < run.offset + run.count; };
      for (auto run = std::upper_bound(chunk.runs.begin(), chunk.runs.end(), from, ends_after);
           run != chunk.runs.end() && run->offset < to; ++run) {
        body(*run, run->offset < from ? from - run->offset : 0, std::min(run->count, to - run->offset));
      }
    });
  }

  template <std::size_t I>
  using codec = std::tuple_element_t<I, typename storage::codecs>;
  using every_array = std::make_index_sequence<array_count>;

  template <class V, class G, class P, std::size_t... I>
  SPILLWAY_ALWAYS_INLINE static void update_one(chunk_view const& chunk, run_view const& run,
                                                typename rule::constants const& c, V scale, std::uint64_t e,
                                                std::index_sequence<I...>) noexcept {
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

  // Flattened: at -O2 g++ would leave a user's update rule a call, with the state in memory.
  template <class G, class P>
  [[gnu::flatten]] static void update_elements(chunk_view const& chunk, run_view const& run,
                                               typename rule::constants const& c, float scale, std::uint64_t first,
                                               std::uint64_t last) noexcept {
    // With five streams the hardware prefetcher alone does not reach memory speed; 2 KiB ahead does.
    constexpr std::uint64_t ahead = 512;
    auto const prefetch = [&]<std::size_t... I>(std::uint64_t e, std::index_sequence<I...>) {
      __builtin_prefetch(run.gradient + (e + ahead) * sizeof(G));
      (__builtin_prefetch(chunk.arrays[I] + (run.offset + e + ahead) * codec<I>::bytes_per_block / block_elements, 1),
       ...);
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
    std::uint64_t whole = 1;
    for (std::uint64_t const extent : run.shape) whole *= extent;
    SPILLWAY_EXPECTS(run.count == whole);  // a chunk plan made with by_group cuts no such tensor
    gradient_.resize(std::max<std::size_t>(gradient_.size(), run.count));
    G const* const gradient = reinterpret_cast<G const*>(run.gradient);
    for (std::uint64_t e = 0; e < run.count; ++e)
      (f32::load(gradient + e) * f32{scalars.gradient_scale}).store(&gradient_[e]);
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
  static void initialise_elements(chunk_view const& chunk, run_view const& run, float const* master,
                                  std::uint64_t first, std::uint64_t last) noexcept {
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
