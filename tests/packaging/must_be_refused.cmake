# SPDX-License-Identifier: Apache-2.0
# cmake -D SOURCE= -D BINARY= -D GENERATOR= -D TEXT= -P must_be_refused.cmake -- OPTION...: configuring SOURCE so must fail,
# and the message must contain TEXT.
cmake_minimum_required(VERSION 3.25)
set(options "")
set(seen FALSE)
math(EXPR last "${CMAKE_ARGC} - 1")
foreach(i RANGE ${last})
  if(seen)
    list(APPEND options "${CMAKE_ARGV${i}}")
  elseif(CMAKE_ARGV${i} STREQUAL "--")
    set(seen TRUE)
  endif()
endforeach()

file(REMOVE_RECURSE ${BINARY})
execute_process(COMMAND ${CMAKE_COMMAND} -S ${SOURCE} -B ${BINARY} -G ${GENERATOR} ${options}
  RESULT_VARIABLE status OUTPUT_VARIABLE printed ERROR_VARIABLE printed)
if(status EQUAL 0)
  message(FATAL_ERROR "configured, and must be refused:\n${printed}")
endif()
# CMake wraps its messages.
string(REGEX REPLACE "[ \n]+" " " printed_flat "${printed}")
string(FIND "${printed_flat}" "${TEXT}" found)
if(found EQUAL -1)
  message(FATAL_ERROR "refused, but without saying '${TEXT}':\n${printed}")
endif()
