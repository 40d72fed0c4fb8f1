// SPDX-License-Identifier: Apache-2.0
/// What the CUDA runtime returns, as spillway::error.
#pragma once

#include <spillway/core/error.hpp>

#include <cuda_runtime_api.h>

#include <string>
#include <system_error>

namespace spillway::inline v0::cuda {

namespace detail {
class runtime_category final : public std::error_category {
 public:
  [[nodiscard]] char const* name() const noexcept override { return "cuda"; }
  [[nodiscard]] std::string message(int code) const override {
    auto const result = static_cast<cudaError_t>(code);
    return std::string(cudaGetErrorName(result)) + ": " + cudaGetErrorString(result);
  }
};
inline constinit runtime_category const runtime_category_instance{};
}  // namespace detail

/// Values are cudaError_t's, the category's name is "cuda".
[[nodiscard]] inline std::error_code error_code_of(cudaError_t result) noexcept {
  return {static_cast<int>(result), detail::runtime_category_instance};
}

/// Errors   the result, unless it is cudaSuccess, with `where`: the class and the runtime's function. The runtime keeps errors for
///          the next cudaGetLastError(); this one is taken out, so that nobody else reports it a second time.
/// Threads  safe.
inline void check(cudaError_t result, char const* where) {
  if (result == cudaSuccess) return;
  static_cast<void>(cudaGetLastError());
  throw error{error_code_of(result), {.where = where}};
}

}  // namespace spillway::inline v0::cuda
