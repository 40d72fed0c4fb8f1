// SPDX-License-Identifier: Apache-2.0
/// Whether this machine has a GPU that CUDA can use.
#pragma once

#include <cuda_runtime_api.h>

#include <string>

namespace test {
/// Empty when there is one; else what the runtime says, which is also what our classes must say.
[[nodiscard]] inline std::string why_no_gpu() {
  int count = 0;
  cudaError_t const result = cudaGetDeviceCount(&count);
  if (result == cudaSuccess) return {};
  static_cast<void>(cudaGetLastError());
  return std::string(cudaGetErrorName(result)) + ": " + cudaGetErrorString(result);
}
}  // namespace test
