// SPDX-License-Identifier: Apache-2.0
#include <spillway/cuda/cuda_device.hpp>
#include <spillway/testing/device_conformance.hpp>

#include <string>
#include <vector>

#include "gpu/gpu_here.hpp"
#include "support/catch.hpp"
#include "support/failures.hpp"

using namespace spillway::literals;
using spillway::bytes;
using spillway::errc;
using spillway::cuda::cuda_device;

using test::thrown_by;

TEST_CASE("cuda_device: without a GPU the failure is named") {
  std::string const reason = test::why_no_gpu();
  if (reason.empty()) SKIP("there is a GPU");
  for (int i = 0; i < 2; ++i) {  // not only the first time
    auto const failure = thrown_by([] { cuda_device{}; });
    CHECK(std::string(failure.code().category().name()) == "cuda");
    CHECK(failure.code().value() != 0);
    CHECK(std::string(failure.what()).find("cuda_device: cudaGetDeviceCount") != std::string::npos);
    CHECK(std::string(failure.what()).find(reason) != std::string::npos);
  }
}

TEST_CASE("cuda_device: conforms") {
  if (std::string const reason = test::why_no_gpu(); !reason.empty()) SKIP("no GPU: " << reason);
  cuda_device device{{.memory = 64_MiB}};
  CHECK(spillway::testing::check_device(device) == std::vector<std::string>{});
}

TEST_CASE("cuda_device: options that the machine does not have are refused by name") {
  if (std::string const reason = test::why_no_gpu(); !reason.empty()) SKIP("no GPU: " << reason);
  CHECK(thrown_by([] { cuda_device{{.index = 4096}}; }).code() == errc::invalid_option);
  CHECK(thrown_by([] { cuda_device{{.index = -1}}; }).code() == errc::invalid_option);
  CHECK(thrown_by([] { cuda_device{{.memory = bytes{1ULL << 60U}}}; }).code() == errc::invalid_option);
}

TEST_CASE("cuda_device: a refused block leaves no error behind (B04, B06)") {
  if (std::string const reason = test::why_no_gpu(); !reason.empty()) SKIP("no GPU: " << reason);
  cuda_device large;
  std::vector<spillway::device_block> held;
  try {
    for (;;) held.push_back(large.allocate(1_GiB));
  } catch (spillway::error const& refused) {
    CHECK(refused.code() == errc::capacity_exceeded);
    CHECK(refused.about().wanted == 1_GiB);
  }
  CHECK(cudaGetLastError() == cudaSuccess);
  for (auto const& block : held) large.deallocate(block);
  CHECK(large.used() == 0_B);

  // An error that the user's own call left behind is not reported by ours, and not taken away.
  cuda_device device{{.memory = 1_MiB}};
  auto stream = device.make_stream();
  CHECK(cudaEventQuery(nullptr) != cudaSuccess);
  device.deallocate(device.allocate(4_KiB));
  stream.wait();
  CHECK(cudaGetLastError() != cudaSuccess);
}
