// SPDX-License-Identifier: Apache-2.0
/// Which GPU a thread's calls go to.
#pragma once

#include <spillway/cuda/cuda_error.hpp>

#include <cuda_runtime_api.h>

#include <string>

namespace spillway::inline v0::cuda::detail {

/// Makes a GPU the current one of this thread, and the one before again at the end.
class current_device {
 public:
  explicit current_device(int index) {
    check(cudaGetDevice(&before_), "cudaGetDevice");
    if (before_ != index) check(cudaSetDevice(index), "cudaSetDevice");
    changed_ = before_ != index;
  }
  current_device(current_device const&) = delete;
  current_device& operator=(current_device const&) = delete;
  ~current_device() {
    if (changed_) static_cast<void>(cudaSetDevice(before_));
  }

 private:
  int before_ = 0;
  bool changed_ = false;
};

/// Errors  the runtime's, naming cudaGetDeviceCount: no driver, a driver too old, no GPU.
inline int device_count(std::string const& who) {
  int count = 0;
  check(cudaGetDeviceCount(&count), (who + ": cudaGetDeviceCount").c_str());
  return count;
}

}  // namespace spillway::inline v0::cuda::detail
