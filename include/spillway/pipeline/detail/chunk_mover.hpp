// SPDX-License-Identifier: Apache-2.0
/// Everything that moves a chunk: homes, slots, and the copies of narrow parameters to the device.
#pragma once

#include <spillway/observe/step_report.hpp>
#include <spillway/pipeline/chunk_homes.hpp>
#include <spillway/pipeline/gradient_store.hpp>
#include <spillway/pipeline/pipeline_options.hpp>
#include <spillway/pipeline/staging_slots.hpp>

#include <algorithm>
#include <array>
#include <span>
#include <thread>
#include <utility>
#include <vector>

namespace spillway::inline v0::detail {

/// Owns the memory through which chunks move and every operation in flight on it.
template <TierOrStack Tiers, Device D>
class chunk_mover {
 public:
  using slot = staging_slot<D>;

  chunk_mover(parameter_layout const& layout, chunk_plan const& chunks, updater_schema const& schema, D& device,
              Tiers tiers, pipeline_options const& options)
      : layout_(&layout),
        chunks_(&chunks),
        arrays_(schema.arrays),
        device_(&device),
        trace_(options.trace),
        homes_(std::move(tiers), schema.arrays, chunks),
        slots_(options.slots, schema, chunks),
        mirror_at_(layout, false),
        mirror_(schema.needs_parameter ? mirror_at_.total() : bytes{}),
        parameters_(layout.size(), nullptr),
        uploaded_(layout.size()),
        upload_(device.make_stream()) {}

  [[nodiscard]] chunk_homes<Tiers>& homes() noexcept { return homes_; }
  [[nodiscard]] staging_slots<D>& slots() noexcept { return slots_; }
  [[nodiscard]] staging_slots<D> const& slots() const noexcept { return slots_; }
  void bind(std::size_t tensor, std::byte* parameter) noexcept { parameters_[tensor] = parameter; }
  [[nodiscard]] typename D::event const& uploaded(std::size_t tensor) const noexcept { return uploaded_[tensor]; }
  [[nodiscard]] std::size_t array_size(std::size_t chunk, std::size_t array) const noexcept {
    return array_bytes(arrays_[array], (*chunks_)[chunk].blocks.size()).count;
  }

  /// Point a free slot at a chunk: its arrays (in the slot, or in place) and its runs, with no gradient yet.
  void place(slot& s, std::uint32_t c) {
    chunk const& where = (*chunks_)[c];
    s.chunk = c;
    for (std::size_t a = 0; a < arrays_.size(); ++a) {
      s.arrays[a] =
          homes_.in_place(c) ? homes_.data(c, a) : s.state + slot_offset(arrays_, a, where.blocks.size()).count;
    }
    s.runs.clear();
    for (run const& r : where.runs) {
      tensor_spec const& tensor = (*layout_)[r.tensor];
      std::byte* const narrow = mirror_.size().count != 0
                                    ? mirror_.data() + mirror_at_[r.tensor] + (r.first * size_of(tensor.type)).count
                                    : s.parameters + (r.offset * 4_B).count;
      s.runs.push_back({.offset = r.offset,
                        .count = r.count,
                        .group = tensor.group,
                        .shape = tensor.shape,
                        .gradient_type = tensor.type,
                        .parameter_type = tensor.type,
                        .parameter = narrow});
    }
  }

  void start_read(slot& s) {
    if (homes_.in_place(s.chunk)) {
      moved_.memory.read += chunk_bytes(s.chunk);
      return;
    }
    for (std::size_t a = 0; a < arrays_.size(); ++a)
      s.reads[a] = homes_.read(s.chunk, a, {s.arrays[a], array_size(s.chunk, a)});
    moved_.file.read += chunk_bytes(s.chunk);
    started(s.read_began, resource::file_read);
  }
  void finish_read(slot& s) {
    for (auto& read : s.reads) read.wait();
    ended(s, s.read_began, resource::file_read, "read");
  }
  void start_write(slot& s) {
    if (homes_.in_place(s.chunk)) {
      moved_.memory.written += chunk_bytes(s.chunk);
      return;
    }
    for (std::size_t a = 0; a < arrays_.size(); ++a)
      s.writes[a] = homes_.write(s.chunk, a, {s.arrays[a], array_size(s.chunk, a)});
    moved_.file.written += chunk_bytes(s.chunk);
    started(s.write_began, resource::file_write);
  }
  void finish_write(slot& s) {
    for (auto& write : s.writes) write.wait();
    ended(s, s.write_began, resource::file_write, "write");
  }
  /// Send the narrow parameters of runs that have a gradient, or of all runs.
  void start_upload(slot& s, bool all) {
    bytes sent{};
    chunk const& where = (*chunks_)[s.chunk];
    for (std::size_t i = 0; i < s.runs.size(); ++i) {
      if (!all && s.runs[i].gradient == nullptr) continue;
      std::size_t const tensor = where.runs[i].tensor;
      SPILLWAY_EXPECTS(parameters_[tensor] != nullptr);  // bind() every tensor first
      bytes const width = size_of(s.runs[i].parameter_type);
      device_->copy_to_device(upload_, parameters_[tensor] + (where.runs[i].first * width).count,
                              {s.runs[i].parameter, (s.runs[i].count * width).count});
      uploaded_[tensor] = device_->record(upload_);
      sent += s.runs[i].count * width;
    }
    if (sent.count == 0) return;
    s.uploaded = device_->record(upload_);
    moved_.parameters_out += sent;
    started(s.upload_began, resource::host_to_device);
  }
  void finish_upload(slot& s) {
    s.uploaded.wait();
    ended(s, s.upload_began, resource::host_to_device, "parameters");
  }
  /// Wait until nothing is in flight on a slot.
  void settle(slot& s) {
    finish_read(s);
    finish_write(s);
    finish_upload(s);
  }
  /// Look at everything in flight, so that the clocks see what has ended; true when the slot at hand is free.
  bool poll(slot& s) noexcept {
    bool const read = all_done(s.reads);
    bool const written = all_done(s.writes);
    bool const sent = s.uploaded.done();
    if (read) ended(s, s.read_began, resource::file_read, "read");
    if (written) ended(s, s.write_began, resource::file_write, "write");
    if (sent) ended(s, s.upload_began, resource::host_to_device, "parameters");
    return read && written && sent;
  }
  void poll() noexcept {
    for (std::size_t i = 0; i < slots_.size(); ++i) static_cast<void>(poll(slots_[i]));
  }
  void drain() {
    for (std::size_t i = 0; i < slots_.size(); ++i) settle(slots_[i]);
  }
  /// After a failure: wait for everything, whatever becomes of it. The failure that counts is on its way to the user already.
  void abandon() noexcept {
    for (std::size_t i = 0; i < slots_.size(); ++i) {
      slot& s = slots_[i];
      for (auto& token : s.reads) token = {};
      for (auto& token : s.writes) token = {};
      while (!s.uploaded.done()) std::this_thread::yield();
      static_cast<void>(poll(s));
    }
  }

  /// piece(device address, host memory) over a tensor's narrow parameter, in order, through the first slot.
  template <class Piece>
  void each_piece(std::size_t tensor, Piece const& piece) {
    SPILLWAY_EXPECTS(parameters_[tensor] != nullptr || layout_->elements(tensor) == 0);
    settle(slots_[0]);
    std::size_t const size = (layout_->elements(tensor) * size_of((*layout_)[tensor].type)).count;
    std::size_t const most = (chunks_->largest() * block_elements * 4_B).count;
    for (std::size_t at = 0; at < size; at += most) {
      piece(parameters_[tensor] + at, std::span<std::byte>{slots_[0].parameters, std::min(most, size - at)});
      if (mirror_.size().count != 0)
        std::copy_n(slots_[0].parameters, std::min(most, size - at), mirror_.data() + mirror_at_[tensor] + at);
    }
  }
  void download(std::span<std::byte> to, std::byte const* from) {
    device_->copy_to_host(upload_, to, from);
    upload_.wait();
  }
  void send(std::byte* to, std::span<std::byte const> from) {
    device_->copy_to_device(upload_, to, from);
    upload_.wait();
  }

  void begin(resource r) noexcept { clocks_[static_cast<std::size_t>(r)].begin(seconds_now()); }
  void end(resource r, char const* what, std::uint32_t number, double began) noexcept {
    double const now = seconds_now();
    clocks_[static_cast<std::size_t>(r)].end(now);
    if (trace_ != nullptr) trace_->add({r, what, number, began, now});
  }
  /// Move what was counted since the last call into a report.
  void report(step_report& out) noexcept {
    out += std::exchange(moved_, step_report{});
    for (std::size_t i = 0; i < clocks_.size(); ++i) out.busy[i] += clocks_[i].take();
  }

 private:
  [[nodiscard]] bytes chunk_bytes(std::size_t c) const noexcept {
    return dense_bytes(arrays_, (*chunks_)[c].blocks.size());
  }
  static bool all_done(std::vector<any_transfer>& tokens) noexcept {
    return std::all_of(tokens.begin(), tokens.end(), [](any_transfer& t) { return t.poll(); });
  }
  void started(double& began, resource r) noexcept {
    began = seconds_now();
    clocks_[static_cast<std::size_t>(r)].begin(began);
  }
  void ended(slot const& s, double& began, resource r, char const* what) noexcept {
    if (began == 0) return;
    end(r, what, s.chunk, std::exchange(began, 0.0));
  }

  parameter_layout const* layout_;
  chunk_plan const* chunks_;
  std::vector<stored_array> arrays_;
  D* device_;
  timeline* trace_;
  chunk_homes<Tiers> homes_;
  staging_slots<D> slots_;
  tensor_offsets mirror_at_;
  huge_buffer mirror_;  // narrow parameters on the host, for codecs that need them
  std::vector<std::byte*> parameters_;
  std::vector<typename D::event> uploaded_;
  std::array<busy_clock, resource_names.size()> clocks_{};
  step_report moved_{};
  typename D::stream upload_;  // last: it drains before the slots go
};

}  // namespace spillway::inline v0::detail
