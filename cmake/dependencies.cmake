# SPDX-License-Identifier: Apache-2.0
# What each component needs from the machine. The build and the installed spillway-config.cmake both use this file, so
# that they search alike and complain alike.

set(SPILLWAY_COMPONENTS core testing uring cuda)

# Finds what `component` needs. Sets `missing` to a sentence that names what is absent, or to nothing.
function(spillway_find_dependencies component missing)
  list(PREPEND CMAKE_MODULE_PATH ${CMAKE_CURRENT_FUNCTION_LIST_DIR})
  set(absent "")
  if(component STREQUAL "core")
    # Boost ships its own package file; CMake's module, on its way out, serves only trees without one.
    find_package(Boost 1.81 CONFIG QUIET)
    if(NOT Boost_FOUND)
      find_package(Boost 1.81 MODULE QUIET)
    endif()
    find_package(Threads QUIET)
    if(NOT Boost_FOUND)
      set(absent "Boost 1.81 or newer (headers only; Debian 12: libboost1.81-dev) was not found")
    elseif(NOT Threads_FOUND)
      set(absent "a thread library was not found")
    endif()
  elseif(component STREQUAL "uring")
    find_package(liburing QUIET)
    if(NOT liburing_FOUND)
      set(absent "liburing (Debian: liburing-dev) was not found")
    endif()
  elseif(component STREQUAL "cuda")
    find_package(CUDAToolkit 12.0 QUIET)
    if(NOT CUDAToolkit_FOUND)
      set(absent "the CUDA Toolkit, 12.0 or newer, was not found")
    endif()
  endif()
  set(${missing} "${absent}" PARENT_SCOPE)
endfunction()

# Code that includes our .cuh files is C++20 for nvcc too. CMake 3.25.1 does not know that standard for CUDA. Decided
# where the target is used, by the CMake that uses it, so nothing of it is exported.
function(spillway_require_cuda20 target)
  if("cuda_std_20" IN_LIST CMAKE_CUDA_COMPILE_FEATURES)
    set_property(TARGET ${target} APPEND PROPERTY INTERFACE_COMPILE_FEATURES $<BUILD_INTERFACE:cuda_std_20>)
  else()
    set_property(TARGET ${target} APPEND PROPERTY
      INTERFACE_COMPILE_OPTIONS $<BUILD_INTERFACE:$<$<COMPILE_LANGUAGE:CUDA>:-std=c++20>>)
  endif()
endfunction()
