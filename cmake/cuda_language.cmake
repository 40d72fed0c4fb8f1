# SPDX-License-Identifier: Apache-2.0
# Makes nvcc usable for our own tests, examples and benchmarks.
include(CheckLanguage)
check_language(CUDA)
if(NOT CMAKE_CUDA_COMPILER)
  message(FATAL_ERROR "SPILLWAY_ENABLE_CUDA: nvcc was not found (put it on the PATH or set CUDACXX)")
endif()
if(NOT DEFINED CMAKE_CUDA_ARCHITECTURES)
  set(CMAKE_CUDA_ARCHITECTURES 75-virtual 90)
endif()
enable_language(CUDA)
