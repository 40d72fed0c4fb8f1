// SPDX-License-Identifier: Apache-2.0
/// Optimizer state on tiers, streamed through an update every step.
#pragma once

#include <spillway/comm/single_process.hpp>
#include <spillway/core/error.hpp>
#include <spillway/device/host_device.hpp>
#include <spillway/durable/spilled_state_concept.hpp>
#include <spillway/observe/step_report.hpp>
#include <spillway/optimizer/host_updater.hpp>
#include <spillway/pipeline/detail/chunk_mover.hpp>
#include <spillway/pipeline/detail/chunk_walk.hpp>
#include <spillway/pipeline/detail/pipeline_checks.hpp>
#include <spillway/scheduler/sequential_scheduler.hpp>

#include <algorithm>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace spillway::inline v0 {

/// The optimizer of one model: narrow parameters and gradients on the device, state on `Tiers`, updates by `Updater` in the order
/// of `Scheduler`. A SpilledState, so checkpoints save and restore it.
/// Threads: one thread at a time. Not movable: transfers in flight know its slots.
template <TierOrStack Tiers, ChunkUpdater Updater = host_updater<adamw_kernel>,
          PrefetchScheduler Scheduler = sequential_scheduler, Device D = host_device>
class offload_pipeline {
 public:
  /// Allocates everything that it will ever hold. `device` outlives it.
  /// Errors  errc::invalid_option (fewer than 2 slots, chunk under one block, a group that the updater does not know);
  ///         what tiers and memory say; errc::unsupported when the updater works on the device or makes several passes.
  offload_pipeline(parameter_layout layout, D& device, Tiers tiers, Updater updater = Updater{},
                   Scheduler scheduler = Scheduler{}, pipeline_options options = {})
      : layout_(checked(std::move(layout), updater, options)),
        updater_(std::move(updater)),
        scheduler_(std::move(scheduler)),
        pool_(options.pool ? options.pool : std::make_shared<thread_pool>()),
        chunks_(layout_, options.chunk_elements, updater_.schema().by_group),
        mover_(layout_, chunks_, updater_.schema(), device, std::move(tiers), options),
        gradients_(layout_, device, options.micro_batches),
        steps_(layout_.size(), 0),
        walk_(chunks_.size()) {}
  offload_pipeline(offload_pipeline const&) = delete;
  offload_pipeline& operator=(offload_pipeline const&) = delete;
  ~offload_pipeline() { mover_.abandon(); }

  /// Say where the narrow parameter of a tensor lives in device memory: [elements] of its dtype. Before anything else.
  void bind(std::size_t tensor, std::byte* parameter) {
    SPILLWAY_EXPECTS(tensor < layout_.size());
    mover_.bind(tensor, parameter);
  }

  /// Begin a fresh run: fill(tensor, first, std::span<float> out) gives the initial weights of [first, first + out.size()), called
  /// in order; other state becomes zero, parameters are sent to the device. Ends with everything at rest.
  template <class Fill>
  void initialise(Fill&& fill) {
    poisoned_ = true;
    std::vector<float const*> masters;
    auto& slot = mover_.slots()[0];
    mover_.settle(mover_.slots()[1]);
    auto* const values = reinterpret_cast<float*>(mover_.slots()[1].parameters);  // 4 B an element, and idle here
    for (std::uint32_t c = 0; c < chunks_.size(); ++c) {
      masters.clear();
      for (run const& r : chunks_[c].runs) {
        fill(r.tensor, r.first, std::span<float>{values + r.offset, r.count});
        masters.push_back(values + r.offset);
      }
      mover_.settle(slot);
      mover_.place(slot, c);
      for (std::size_t a = 0; a < slot.arrays.size(); ++a)
        std::fill_n(slot.arrays[a], mover_.array_size(c, a), std::byte{0});
      updater_.initialise({slot.arrays, slot.runs}, masters, {});
      mover_.start_write(slot);
      mover_.start_upload(slot, true);
    }
    mover_.settle(slot);
    update_ = 0;
    std::fill(steps_.begin(), steps_.end(), 0);
    finish_import();
  }

  /// Hand over the gradient of one tensor and micro-batch: [elements] of its dtype in device memory, valid once `ready` is done.
  /// Returns at once; the source may be overwritten after the returned event.
  /// Errors  errc::invalid_option for more micro-batches than planned.
  typename D::event accumulate(std::size_t tensor, std::byte const* gradient, typename D::event const& ready = {}) {
    SPILLWAY_EXPECTS(tensor < layout_.size());
    return gradients_.accumulate(tensor, gradient, ready);
  }

  /// One optimizer step over every tensor that has a gradient: unscale, clip by the global norm, update, write back, send the new
  /// narrow parameters to the device. Returns when all of that is done. If a gradient is not finite on any rank, nothing changes
  /// and the report says skipped.
  /// Errors  errc::gradient_missing; errc::invalid_option (step options, order of the scheduler); what tiers and device throw: if
  ///         a chunk may have changed the state is then poisoned, and only initialise or an import helps.
  template <Communicator C>
  step_report step(step_options const& options, C& ranks) {
    refuse_poisoned();
    if (!gradients_.any()) throw error{errc::gradient_missing, {.where = "offload_pipeline step"}};
    detail::require_step(options);
    float_environment const exact;
    step_report report;
    mover_.report(report);  // what moved between steps (saves, digests) is not of this one
    report = {.update = update_ + 1};
    double const began = seconds_now();
    plan_walk();
    try {
      read_ahead(0, report);  // what is read does not depend on the norm
      timed(resource::device_to_host, "gradients", 0, [&] { gradients_.settle(); });
      gradient_sum sum;
      timed(resource::host_update, "norm", 0, [&] { sum = gradients_.sum(*pool_); });
      ranks.all_reduce_sum(sum.squares.digits());
      auto bad = static_cast<std::int64_t>(sum.non_finite);
      ranks.all_reduce_sum(std::span{&bad, 1});
      report.gradient_norm = (sqrt(f64{sum.squares.value()}) / options.loss_scale).value;
      report.skipped = bad != 0;
      if (report.skipped) {
        mover_.abandon();
      } else {
        report.clip = clip_factor(report.gradient_norm, options.max_norm);
        poisoned_ = true;
        walk({options.learning_rate_factor, (f64{report.clip} / options.loss_scale).narrowed()}, report);
        poisoned_ = false;
      }
    } catch (...) {
      mover_.abandon();
      throw;
    }
    report.gradients_in = gradients_.clear();
    mover_.report(report);
    report.wall = seconds_now() - began;
    auto const busy = [&](resource r) { return report.busy[static_cast<std::size_t>(r)]; };
    scheduler_.observe({report.wall, busy(resource::file_read), busy(resource::file_write), busy(resource::host_update),
                        report.waited_for_read, report.waited_for_write});
    return report;
  }
  step_report step(step_options const& options) {
    single_process alone;
    return step(options, alone);
  }

  /// After this event the device's copy of the parameter is as of the last step: what the next forward pass waits for.
  [[nodiscard]] typename D::event parameters_ready(std::size_t tensor) const { return mover_.uploaded(tensor); }

  /// Optimizer updates so far; skipped steps do not count.
  [[nodiscard]] std::uint64_t updates() const noexcept { return update_; }
  [[nodiscard]] chunk_homes<Tiers>& homes() noexcept { return mover_.homes(); }
  [[nodiscard]] Updater const& updater() const noexcept { return updater_; }
  /// What staging memory really is: asked, held, huge pages or why not.
  [[nodiscard]] huge_buffer_report staging() const { return mover_.slots().memory().report(); }

  // What makes it a SpilledState; see there.
  [[nodiscard]] parameter_layout const& layout() const noexcept { return layout_; }
  [[nodiscard]] chunk_plan const& chunks() const noexcept { return chunks_; }
  [[nodiscard]] std::span<stored_array const> arrays() const noexcept { return updater_.schema().arrays; }
  [[nodiscard]] std::string rule() const {
    return updater_.schema().kernel + "/" + std::string(name_of(updater_.schema().rule));
  }

  template <class Sink>
  void export_chunk(std::size_t c, Sink&& sink) {
    refuse_poisoned();
    auto& slot = mover_.slots()[0];
    mover_.settle(slot);
    mover_.place(slot, static_cast<std::uint32_t>(c));
    mover_.start_read(slot);
    mover_.finish_read(slot);
    for (std::size_t a = 0; a < slot.arrays.size(); ++a)
      sink(a, std::span<std::byte const>{slot.arrays[a], mover_.array_size(c, a)});
  }
  template <class Sink>
  void export_parameter(std::size_t tensor, Sink&& sink) {
    refuse_poisoned();
    mover_.each_piece(tensor, [&](std::byte* device, std::span<std::byte> piece) {
      mover_.download(piece, device);
      sink(std::span<std::byte const>{piece});
    });
  }
  void begin_import() noexcept { poisoned_ = true; }
  template <class Source>
  void import_chunk(std::size_t c, Source&& source) {
    auto& slot = mover_.slots()[0];
    mover_.settle(slot);
    mover_.place(slot, static_cast<std::uint32_t>(c));
    for (std::size_t a = 0; a < slot.arrays.size(); ++a)
      source(a, std::span<std::byte>{slot.arrays[a], mover_.array_size(c, a)});
    mover_.start_write(slot);
    mover_.settle(slot);
  }
  template <class Source>
  void import_parameter(std::size_t tensor, Source&& source) {
    mover_.each_piece(tensor, [&](std::byte* device, std::span<std::byte> piece) {
      source(piece);
      mover_.send(device, piece);
    });
  }
  void finish_import() noexcept {
    gradients_.clear();
    poisoned_ = false;
  }
  template <class Visitor>
  void visit_counters(Visitor&& visit) {
    visit("update", update_);
    visit("steps", steps_);
  }

 private:
  static parameter_layout checked(parameter_layout layout, Updater const& updater, pipeline_options const& options) {
    detail::require_pipeline(layout, updater.schema(), options);
    return layout;
  }
  void refuse_poisoned() const {
    if (poisoned_) {
      throw error{errc::poisoned, {.where = "offload_pipeline", .detail = "initialise it, or restore a checkpoint"}};
    }
  }
  template <class Work>
  void timed(resource where, char const* what, std::uint32_t number, Work const& work) {
    double const began = seconds_now();
    mover_.begin(where);
    try {
      work();
    } catch (...) {
      mover_.end(where, what, number, began);
      throw;
    }
    mover_.end(where, what, number, began);
  }

  void plan_walk() {
    auto const count = static_cast<std::uint32_t>(chunks_.size());
    auto const slots = static_cast<std::uint32_t>(mover_.slots().size());
    walk_.plan(scheduler_, {update_ + 1, count, slots}, [&](std::uint32_t c) {
      auto const& runs = chunks_[c].runs;
      return std::any_of(runs.begin(), runs.end(), [&](run const& r) { return gradients_.present(r.tensor); });
    });
  }

  void walk(update_scalars const& scalars, step_report& report) {
    ++update_;
    for (std::size_t t = 0; t < steps_.size(); ++t) steps_[t] += gradients_.present(t) ? 1U : 0U;
    for (std::size_t v = 0; v < walk_.size(); ++v) {
      read_ahead(v, report);
      auto& slot = mover_.slots()[v % mover_.slots().size()];
      take_gradients(slot);
      report.waited_for_read += stopwatch([&] { mover_.finish_read(slot); });
      auto const update = [&] { updater_.update({slot.arrays, slot.runs}, scalars, {}); };
      timed(resource::host_update, "update", slot.chunk, update);
      for (run_view const& r : slot.runs) report.elements += r.gradient != nullptr ? r.count : 0;
      mover_.start_write(slot);
      mover_.start_upload(slot, false);
      mover_.poll();
    }
    report.waited_for_write += stopwatch([&] { mover_.drain(); });
  }
  // Reads of the walk up to `depth` chunks beyond number v, into slots that are free.
  void read_ahead(std::size_t v, step_report& report) {
    std::size_t const slots = mover_.slots().size();
    std::size_t const depth = std::min<std::size_t>(scheduler_.read_ahead(), slots - 1);
    for (; walk_.begun < walk_.size() && walk_.begun <= v + depth; ++walk_.begun) {
      auto& slot = mover_.slots()[walk_.begun % slots];
      if (!mover_.poll(slot) && walk_.begun > v) return;  // only read-ahead: go on with what is there
      report.waited_for_write += stopwatch([&] { mover_.settle(slot); });
      mover_.place(slot, walk_[walk_.begun]);
      mover_.start_read(slot);
    }
  }
  void take_gradients(staging_slot<D>& slot) {
    for (std::size_t i = 0; i < slot.runs.size(); ++i) {
      run const& r = chunks_[slot.chunk].runs[i];
      if (!gradients_.present(r.tensor)) continue;
      slot.runs[i].step = steps_[r.tensor];
      slot.runs[i].gradient_type = gradients_.type(r.tensor);
      slot.runs[i].gradient = gradients_.data(r.tensor) + (r.first * size_of(slot.runs[i].gradient_type)).count;
    }
  }
  template <class Work>
  static double stopwatch(Work const& work) {
    double const began = seconds_now();
    work();
    return seconds_now() - began;
  }

  parameter_layout layout_;
  Updater updater_;
  Scheduler scheduler_;
  std::shared_ptr<thread_pool> pool_;
  chunk_plan chunks_;
  detail::chunk_mover<Tiers, D> mover_;
  gradient_store<D> gradients_;
  std::vector<std::uint64_t> steps_;  // per tensor: updates that it took part in
  detail::chunk_walk walk_;
  std::uint64_t update_ = 0;
  bool poisoned_ = true;  // until initialised or imported
};

}  // namespace spillway::inline v0
