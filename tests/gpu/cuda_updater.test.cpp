// SPDX-License-Identifier: Apache-2.0
#include <spillway/cuda/cuda_device.hpp>
#include <spillway/optimizer/host_updater.hpp>

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "gpu/gpu_here.hpp"
#include "gpu/make_updater.hpp"
#include "support/catch.hpp"

using namespace spillway::literals;
using spillway::adamw_kernel;
using spillway::bf16;
using spillway::bytes;
using spillway::chunk_view;
using spillway::dtype;
using spillway::errc;
using spillway::native_stream;
using spillway::run_view;

namespace {
/// A chunk of AdamW in one piece of memory: three arrays, then a master, a gradient and a parameter for each run.
class image {
 public:
  struct tensor {
    std::uint64_t count;
    dtype gradient_type, parameter_type;
    std::uint32_t group = 0;
    bool has_gradient = true;
  };
  explicit image(std::vector<tensor> tensors) : tensors_(std::move(tensors)) {
    for (tensor const& t : tensors_) elements_ += spillway::round_up(t.count, spillway::block_elements);
    size_ = 3 * elements_ * sizeof(float) + tensors_.size() * 3 * input_bytes();
  }
  [[nodiscard]] std::uint64_t size() const { return size_; }

  /// The chunk as it lies in `memory`; the views live as long as the image and until the next call.
  [[nodiscard]] chunk_view at(std::byte* memory, std::uint64_t step) {
    for (std::uint64_t a = 0; a < 3; ++a) arrays_[a] = memory + a * elements_ * sizeof(float);
    runs_.clear();
    masters_.clear();
    std::byte* next = memory + 3 * elements_ * sizeof(float);
    std::uint64_t offset = 0;
    for (tensor const& t : tensors_) {
      masters_.push_back(reinterpret_cast<float const*>(next));
      run_view run;
      run.offset = offset;
      run.count = t.count;
      run.group = t.group;
      run.step = step;
      run.gradient_type = t.gradient_type;
      run.parameter_type = t.parameter_type;
      run.gradient = t.has_gradient ? next + input_bytes() : nullptr;
      run.parameter = next + 2 * input_bytes();
      runs_.push_back(run);
      next += 3 * input_bytes();
      offset += spillway::round_up(t.count, spillway::block_elements);
    }
    return {arrays_, runs_};
  }
  [[nodiscard]] std::span<float const* const> masters() const { return masters_; }

  /// All bytes random; masters and gradients usual numbers, some of them denormal, huge, zero, infinite or NaN.
  [[nodiscard]] std::vector<std::byte> random_bytes(unsigned seed) {
    std::mt19937 random{seed};
    std::normal_distribution<float> usual;
    std::vector<std::byte> out(size_);
    for (auto& b : out) b = static_cast<std::byte>(random());
    auto const number = [&]() -> float {
      switch (random() % 64) {
        case 0:
          return 1e-41F;
        case 1:
          return -3e38F;
        case 2:
          return 0.0F;
        case 3:
          return -std::numeric_limits<float>::infinity();
        case 4:
          return std::numeric_limits<float>::quiet_NaN();
        default:
          return usual(random) * (random() % 2 == 0 ? 1.0F : 1e-20F);
      }
    };
    static_cast<void>(at(out.data(), 1));
    for (std::size_t i = 0; i < tensors_.size(); ++i) {
      auto* const master = out.data() + (reinterpret_cast<std::byte const*>(masters_[i]) - out.data());
      auto* const gradient = master + input_bytes();
      for (std::uint64_t e = 0; e < tensors_[i].count; ++e) {
        float const m = usual(random);
        std::memcpy(master + e * sizeof m, &m, sizeof m);
        float const g = number();
        bf16 const narrow = spillway::narrow(g);
        if (tensors_[i].gradient_type == dtype::bfloat16) {
          std::memcpy(gradient + e * sizeof narrow, &narrow, sizeof narrow);
        } else {
          std::memcpy(gradient + e * sizeof g, &g, sizeof g);
        }
      }
    }
    return out;
  }

 private:
  [[nodiscard]] std::uint64_t input_bytes() const { return elements_ * sizeof(float); }
  std::vector<tensor> tensors_;
  std::uint64_t elements_ = 0, size_ = 0;
  std::array<std::byte*, 3> arrays_{};
  std::vector<run_view> runs_;
  std::vector<float const*> masters_;
};
}  // namespace

TEST_CASE("cuda::updater: without a GPU the failure is named, through any_updater") {
  std::string const reason = test::why_no_gpu();
  if (reason.empty()) SKIP("there is a GPU");
  try {
    static_cast<void>(make_cuda_updater(adamw_kernel{}));
    FAIL("an updater was made without a GPU");
  } catch (spillway::error const& failure) {
    CHECK(std::string(failure.code().category().name()) == "cuda");
    CHECK(std::string(failure.what()).find("cuda::updater: cudaGetDeviceCount") != std::string::npos);
    CHECK(std::string(failure.what()).find(reason) != std::string::npos);
  }
  try {
    static_cast<void>(make_cuda_updater(std::vector<adamw_kernel>{}));
    FAIL("an updater was made without a kernel");
  } catch (spillway::error const& failure) {
    CHECK(failure.code() == errc::invalid_option);
  }
}

TEST_CASE("cuda::updater: its per-element functions leave the bits of host_updater when the host runs them") {
  adamw_kernel const kernel{.lr = 3e-4, .weight_decay = 0.1};
  image chunk{{{1, dtype::bfloat16, dtype::bfloat16},
               {3000, dtype::bfloat16, dtype::bfloat16},
               {1024, dtype::bfloat16, dtype::float32},
               {5000, dtype::float32, dtype::bfloat16},
               {3001, dtype::float32, dtype::float32},
               {2000, dtype::bfloat16, dtype::bfloat16, 0, false}}};
  spillway::host_updater<adamw_kernel> reference{kernel};
  std::vector<std::byte> expected = chunk.random_bytes(6);
  std::vector<std::byte> actual = expected;
  auto view = chunk.at(expected.data(), 1);
  reference.initialise(view, chunk.masters());
  view = chunk.at(actual.data(), 1);
  initialise_as_a_gpu_would(view, chunk.masters());
  for (std::uint64_t step = 1; step <= 4; ++step) {
    spillway::update_scalars const scalars{.learning_rate_factor = 0.5, .gradient_scale = 0.37F};
    reference.update(chunk.at(expected.data(), step), scalars);
    update_as_a_gpu_would(kernel, chunk.at(actual.data(), step), scalars);
    CHECK(std::equal(actual.begin(), actual.end(), expected.begin()));
  }
}

TEST_CASE("cuda::updater: leaves the bits that host_updater leaves") {
  if (std::string const reason = test::why_no_gpu(); !reason.empty()) SKIP("no GPU: " << reason);
  std::vector<adamw_kernel> const kernels{{.lr = 3e-4, .weight_decay = 0.1},
                                          {.lr = 1e-2, .beta1 = 0.8, .weight_decay = 0.0}};
  image chunk{{{1, dtype::bfloat16, dtype::bfloat16, 0},
               {100000, dtype::bfloat16, dtype::bfloat16, 0},
               {1024, dtype::bfloat16, dtype::float32, 1},
               {5000, dtype::float32, dtype::bfloat16, 1},
               {3001, dtype::float32, dtype::float32, 0},
               {2000, dtype::bfloat16, dtype::bfloat16, 0, false}}};
  spillway::host_updater<adamw_kernel> on_host{kernels};
  spillway::any_updater on_gpu = make_cuda_updater(kernels);
  CHECK(on_gpu.schema().on_device);
  CHECK(on_gpu.schema().kernel == on_host.schema().kernel);

  spillway::cuda::cuda_device device{{.memory = 64_MiB}};
  auto const block = device.allocate(bytes{chunk.size()});
  std::vector<std::byte> host = chunk.random_bytes(5);
  std::vector<std::byte> back(host.size());
  auto stream = device.make_stream();
  device.copy_to_device(stream, block.data, host);
  stream.wait();
  chunk_view const view_on_host = chunk.at(host.data(), 1);
  on_host.initialise(view_on_host, chunk.masters());
  device.submit(stream, [&](auto& context) {
    auto const view = chunk.at(context.address(block.data), 1);
    on_gpu.initialise(view, chunk.masters(), context.stream());
  });
  for (std::uint64_t step = 1; step <= 4; ++step) {
    spillway::update_scalars const scalars{.learning_rate_factor = 0.5, .gradient_scale = 0.37F};
    on_host.update(chunk.at(host.data(), step), scalars);
    device.submit(stream, [&](auto& context) {
      on_gpu.update(chunk.at(context.address(block.data), step), scalars, context.stream());
    });
    device.copy_to_host(stream, back, block.data);
    stream.wait();
    CHECK(std::equal(back.begin(), back.end(), host.begin()));
  }
  device.deallocate(block);
}

TEST_CASE("cuda::updater: a group without a kernel is refused before anything is launched") {
  if (std::string const reason = test::why_no_gpu(); !reason.empty()) SKIP("no GPU: " << reason);
  spillway::any_updater updater = make_cuda_updater(std::vector<adamw_kernel>(2));
  image chunk{{{8, dtype::bfloat16, dtype::bfloat16, 7}}};
  std::vector<std::byte> memory(chunk.size());
  try {
    updater.update(chunk.at(memory.data(), 1), {}, native_stream{});
    FAIL("it was not refused");
  } catch (spillway::error const& refused) {
    CHECK(refused.code() == errc::invalid_option);
  }
}
