# SPDX-License-Identifier: Apache-2.0
# What our own tests, examples and benchmarks are built with. Nothing here reaches a user's target.

set(SPILLWAY_SANITIZE "" CACHE STRING "Sanitizers for our own programs: 'address;undefined' or 'thread'")

add_library(spillway_own INTERFACE)
get_property(components GLOBAL PROPERTY SPILLWAY_BUILT_COMPONENTS)
list(TRANSFORM components PREPEND spillway::)
target_link_libraries(spillway_own INTERFACE ${components})
target_compile_options(spillway_own INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-Wall;-Wextra;-Wconversion;-Wshadow>)
# Errors with the versions that this project is tested with; what a newer compiler finds must not stop a newcomer's run.
if((CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION MATCHES "^12\\.") OR
   (CMAKE_CXX_COMPILER_ID STREQUAL "Clang" AND CMAKE_CXX_COMPILER_VERSION MATCHES "^14\\."))
  target_compile_options(spillway_own INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-Werror>)
endif()
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  target_compile_options(spillway_own INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-Wno-restrict>)  # GCC bug 105651: string + string
endif()
if(SPILLWAY_SANITIZE)
  list(JOIN SPILLWAY_SANITIZE "," sanitizers)
  target_compile_options(spillway_own INTERFACE
    $<$<COMPILE_LANGUAGE:CXX>:-fsanitize=${sanitizers};-fno-sanitize-recover=all;-fno-omit-frame-pointer;-g1>)
  target_link_options(spillway_own INTERFACE -fsanitize=${sanitizers})
  if("thread" IN_LIST SPILLWAY_SANITIZE AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    target_compile_options(spillway_own INTERFACE -Wno-tsan)  # Asio's fences, which g++ cannot model
  endif()
endif()

# A test that cannot exist in this configuration is still listed, as skipped, with the reason.
function(spillway_add_skipped_test name reason)
  if(SPILLWAY_BUILD_TESTS)
    add_test(NAME "${name}" COMMAND ${CMAKE_COMMAND} -E echo "[skip] ${reason}")
    set_tests_properties("${name}" PROPERTIES SKIP_REGULAR_EXPRESSION "^\\[skip\\]")
  endif()
endfunction()

# Sets `out` to the first back end that one of the sources includes and that this configuration lacks, or to nothing.
# A .cu needs nvcc, and so the component cuda.
function(spillway_absent_component out)
  foreach(name IN ITEMS uring cuda)
    if(NOT TARGET spillway_${name})
      foreach(source IN LISTS ARGN)
        file(STRINGS ${source} uses REGEX "^#include <spillway/${name}/" LIMIT_COUNT 1)
        if(uses OR (name STREQUAL "cuda" AND source MATCHES "\\.cu$"))
          set(${out} ${name} PARENT_SCOPE)
          return()
        endif()
      endforeach()
    endif()
  endforeach()
  set(${out} "" PARENT_SCOPE)
endfunction()

function(spillway_leave_out name component)
  string(TOUPPER ${component} upper)
  message(STATUS "spillway: ${name} is left out: configured without SPILLWAY_ENABLE_${upper}")
  spillway_add_skipped_test("${name}" "configured without SPILLWAY_ENABLE_${upper}")
endfunction()
