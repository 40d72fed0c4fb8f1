// SPDX-License-Identifier: Apache-2.0
/// A CUDA GPU as a Device. Needs the CUDA runtime's headers and library, not nvcc.
#pragma once

#include <spillway/core/bytes.hpp>
#include <spillway/core/config.hpp>
#include <spillway/core/error.hpp>
#include <spillway/cuda/cuda_error.hpp>
#include <spillway/cuda/detail/current_device.hpp>
#include <spillway/device/device_concept.hpp>

#include <cuda_runtime_api.h>

#include <cstddef>
#include <exception>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <type_traits>
#include <utility>

namespace spillway::inline v0::cuda {

struct cuda_device_options {
  int index = 0;   ///< as the CUDA runtime counts
  bytes memory{};  ///< the budget; 0 B: all that the GPU has
};

/// One GPU under a budget. Memory by cudaMalloc, streams that do not wait for the default stream, events without timing.
/// submit() calls the task at once on the caller's thread; the task enqueues on context.stream().
/// Streams and events may outlive the device. A moved-from device can only be destroyed or assigned to.
/// Threads  every member may be called from any thread, each stream used by one thread at a time.
class cuda_device {
  using failure = std::shared_ptr<error::context const>;  // of a task; null: none

 public:
  /// What a task sees. The GPU is the thread's current one while the task runs.
  class context {
   public:
    [[nodiscard]] static std::byte* address(std::byte* p) noexcept { return p; }
    [[nodiscard]] static std::byte const* address(std::byte const* p) noexcept { return p; }
    [[nodiscard]] native_stream stream() const noexcept { return {stream_}; }

   private:
    friend cuda_device;
    explicit context(cudaStream_t stream) noexcept : stream_(stream) {}
    cudaStream_t stream_;
  };

  /// A point in a stream's work. Threads: any number of threads may use one event.
  class event {
   public:
    event() noexcept = default;
    [[nodiscard]] bool done() const noexcept {
      if (handle_ == nullptr) return true;
      cudaError_t const result = cudaEventQuery(handle_.get());
      if (result != cudaSuccess) static_cast<void>(cudaGetLastError());
      return result != cudaErrorNotReady;
    }
    /// Errors  device_failed, naming the task's failure or what the runtime reports.
    void wait() const {
      if (handle_ == nullptr) return;
      check_work(cudaEventSynchronize(handle_.get()));
      if (failure_ != nullptr) throw error{errc::device_failed, *failure_};
    }

   private:
    friend cuda_device;
    std::shared_ptr<CUevent_st> handle_;
    failure failure_;  // of a task before this point
  };

  /// Work in order. Destroying one waits for its work. Moved from: only destroyed or assigned to.
  class stream {
   public:
    stream(stream&& other) noexcept
        : handle_(std::exchange(other.handle_, nullptr)), index_(other.index_), failure_(std::move(other.failure_)) {}
    stream& operator=(stream&& other) noexcept {
      if (this != &other) {
        finish();
        handle_ = std::exchange(other.handle_, nullptr);
        index_ = other.index_;
        failure_ = std::move(other.failure_);
      }
      return *this;
    }
    ~stream() { finish(); }

    /// Errors  device_failed, naming the task's failure or what the runtime reports.
    void wait() {
      SPILLWAY_EXPECTS(handle_ != nullptr);
      check_work(cudaStreamSynchronize(handle_));
      if (failure_ != nullptr) throw error{errc::device_failed, *failure_};
    }

   private:
    friend cuda_device;
    explicit stream(int index) : index_(index) {
      check(cudaStreamCreateWithFlags(&handle_, cudaStreamNonBlocking), "cuda_device: cudaStreamCreateWithFlags");
    }
    void finish() noexcept {
      if (handle_ == nullptr) return;
      static_cast<void>(cudaStreamSynchronize(handle_));
      static_cast<void>(cudaStreamDestroy(std::exchange(handle_, nullptr)));
    }
    cudaStream_t handle_ = nullptr;
    int index_;
    failure failure_;  // of a task; the work after it is dropped
  };

  /// Errors  without a driver or a GPU, what cudaGetDeviceCount says, by its name; invalid_option: no GPU of that index, or a budget
  ///         over what it has.
  explicit cuda_device(cuda_device_options options = {}) : state_(std::make_unique<state>()) {
    int const count = detail::device_count("cuda_device");
    if (options.index < 0 || options.index >= count) {
      throw error{errc::invalid_option,
                  {.where = "cuda_device",
                   .detail = "there is no GPU " + std::to_string(options.index) + " of " + std::to_string(count)}};
    }
    state_->index = options.index;
    detail::current_device const current{options.index};
    std::size_t left = 0, total = 0;
    check(cudaMemGetInfo(&left, &total), "cuda_device: cudaMemGetInfo");
    if (options.memory > bytes{total}) {
      throw error{errc::invalid_option,
                  {.where = "cuda_device",
                   .wanted = options.memory,
                   .got = bytes{total},
                   .detail = "the budget is over what the GPU has"}};
    }
    state_->capacity = options.memory == bytes{} ? bytes{total} : options.memory;
    cudaDeviceProp properties{};
    check(cudaGetDeviceProperties(&properties, options.index), "cuda_device: cudaGetDeviceProperties");
    state_->name = properties.name;
  }

  /// A block counts against the budget as a multiple of 256 B. n = 0: no block.
  /// Errors   capacity_exceeded: over the budget, or the GPU's memory is held by others; got is what is left of the one or the other.
  [[nodiscard]] device_block allocate(bytes n) {
    if (n == bytes{}) return {};
    state& s = checked_state();
    std::lock_guard const lock{s.mutex};
    bytes const left = s.capacity - s.used;
    if (n > left || round_up(n, granule) > left) {
      throw error{errc::capacity_exceeded,
                  {.where = "cuda_device allocate",
                   .wanted = n,
                   .got = left,
                   .detail = "device memory budget " + to_string(s.capacity)}};
    }
    detail::current_device const current{s.index};
    void* data = nullptr;
    cudaError_t const result = cudaMalloc(&data, round_up(n, granule).count);
    if (result == cudaErrorMemoryAllocation) {
      static_cast<void>(cudaGetLastError());  // else the next call that asks for it reports this refusal
      std::size_t unused = 0, total = 0;
      check(cudaMemGetInfo(&unused, &total), "cuda_device: cudaMemGetInfo");
      throw error{errc::capacity_exceeded,
                  {.where = "cuda_device allocate",
                   .wanted = n,
                   .got = bytes{unused},
                   .detail = "cudaMalloc refused: the budget is not used up, so others hold memory of this GPU"}};
    }
    check(result, "cuda_device: cudaMalloc");
    s.used += round_up(n, granule);
    if (s.peak < s.used) s.peak = s.used;
    return {.data = static_cast<std::byte*>(data), .size = n};
  }
  /// Pre      from allocate() of this device, not yet given back, and no work in flight uses it.
  void deallocate(device_block block) noexcept {
    if (block.data == nullptr) return;
    state& s = checked_state();
    std::lock_guard const lock{s.mutex};
    SPILLWAY_EXPECTS(round_up(block.size, granule) <= s.used);
    s.used -= round_up(block.size, granule);
    static_cast<void>(cudaFree(block.data));  // may only report what failed before, which its own wait reports
  }

  [[nodiscard]] stream make_stream() {
    detail::current_device const current{checked_state().index};
    return stream{state_->index};
  }

  /// Pre      source lives and keeps its bytes until an event recorded after is done. Pageable memory: the runtime copies it aside
  ///          first, so the call takes as long as that.
  /// Errors   what cudaMemcpyAsync returns.
  void copy_to_device(stream& on, std::byte* to, std::span<std::byte const> from) {
    copy(on, to, from.data(), from.size(), cudaMemcpyHostToDevice);
  }
  /// Pre      `to` lives, and nobody reads it, until an event recorded after is done.
  /// Errors   what cudaMemcpyAsync returns.
  void copy_to_host(stream& on, std::span<std::byte> to, std::byte const* from) {
    copy(on, to.data(), from, to.size(), cudaMemcpyDeviceToHost);
  }
  /// Calls `task(context&)` now, unless an earlier one of this stream failed.
  /// Errors   none here: what the task throws comes back from stream::wait().
  template <class Task>
    requires std::is_invocable_v < std::decay_t<Task>
  &, context& > void submit(stream& on, Task&& task) {
    SPILLWAY_EXPECTS(on.handle_ != nullptr);
    if (on.failure_ != nullptr) return;
    try {
      detail::current_device const current{on.index_};
      context seen{on.handle_};
      static_cast<void>(task(seen));
    } catch (std::exception const& thrown) {
      fail(on, thrown.what());
    } catch (...) {
      fail(on, "something that is not a std::exception");
    }
  }

  /// Errors   what cudaEventCreateWithFlags or cudaEventRecord returns.
  [[nodiscard]] event record(stream& of) {
    SPILLWAY_EXPECTS(of.handle_ != nullptr);
    detail::current_device const current{of.index_};
    cudaEvent_t handle = nullptr;
    check(cudaEventCreateWithFlags(&handle, cudaEventDisableTiming), "cuda_device: cudaEventCreateWithFlags");
    event out;
    out.handle_ = {handle, [](cudaEvent_t e) { static_cast<void>(cudaEventDestroy(e)); }};
    out.failure_ = of.failure_;
    check(cudaEventRecord(handle, of.handle_), "cuda_device: cudaEventRecord");
    return out;
  }
  /// Errors   what cudaStreamWaitEvent returns.
  void wait(stream& waiting, event const& until) {
    SPILLWAY_EXPECTS(waiting.handle_ != nullptr);
    if (until.handle_ == nullptr || waiting.failure_ != nullptr) return;
    check(cudaStreamWaitEvent(waiting.handle_, until.handle_.get(), 0), "cuda_device: cudaStreamWaitEvent");
    waiting.failure_ = until.failure_;
  }

  [[nodiscard]] bytes capacity() const noexcept { return checked_state().capacity; }
  [[nodiscard]] bytes used() const noexcept {
    std::lock_guard const lock{checked_state().mutex};
    return state_->used;
  }
  [[nodiscard]] bytes peak() const noexcept {
    std::lock_guard const lock{checked_state().mutex};
    return state_->peak;
  }
  /// "NVIDIA H200 (cuda_device 0, 139.8 GiB)": the budget, not what the GPU has.
  [[nodiscard]] std::string name() const {
    state const& s = checked_state();
    return s.name + " (cuda_device " + std::to_string(s.index) + ", " + to_string(s.capacity) + ")";
  }

 private:
  static constexpr bytes granule{256};  // of cudaMalloc

  struct state {
    int index = 0;
    bytes capacity{};
    std::string name{};
    std::mutex mutex{};
    bytes used{}, peak{};
  };

  static void check_work(cudaError_t result) {
    if (result == cudaSuccess) return;
    static_cast<void>(cudaGetLastError());
    throw error{errc::device_failed, {.where = "cuda_device", .detail = error_code_of(result).message()}};
  }
  static void fail(stream& on, char const* what) {
    on.failure_ = std::make_shared<error::context const>(error::context{.where = "cuda_device task", .detail = what});
  }
  static void copy(stream& on, void* to, void const* from, std::size_t n, cudaMemcpyKind kind) {
    SPILLWAY_EXPECTS(on.handle_ != nullptr);
    if (n == 0 || on.failure_ != nullptr) return;
    check(cudaMemcpyAsync(to, from, n, kind, on.handle_), "cuda_device: cudaMemcpyAsync");
  }
  [[nodiscard]] state& checked_state() const noexcept {
    SPILLWAY_EXPECTS(state_ != nullptr);
    return *state_;
  }

  std::unique_ptr<state> state_;
};
static_assert(Device<cuda_device>);

}  // namespace spillway::inline v0::cuda
