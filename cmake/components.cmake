# SPDX-License-Identifier: Apache-2.0
# One INTERFACE target, one export file and one set of headers for each component.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)
include(${CMAKE_CURRENT_LIST_DIR}/dependencies.cmake)

set(SPILLWAY_CMAKE_DIR ${CMAKE_INSTALL_DATADIR}/cmake/spillway)

function(spillway_add_component name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "FOLDERS;DEPENDS")
  spillway_find_dependencies(${name} missing)
  if(missing)
    message(FATAL_ERROR "spillway::${name} needs what this machine lacks: ${missing}")
  endif()

  # Headers are found, not listed: in a header-only library a list would be a second place that every new header has to
  # be written into, and a header that is forgotten there is found missing only by the first user who installs.
  # CONFIGURE_DEPENDS makes the build look again.
  set(patterns "")
  foreach(folder IN LISTS arg_FOLDERS)
    list(APPEND patterns ${PROJECT_SOURCE_DIR}/include/spillway/${folder}/*.hpp
      ${PROJECT_SOURCE_DIR}/include/spillway/${folder}/*.cuh)
  endforeach()
  file(GLOB_RECURSE headers CONFIGURE_DEPENDS ${patterns})
  if(name STREQUAL "core")
    file(GLOB umbrella CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/include/spillway/*.hpp)
    list(APPEND headers ${umbrella})
  endif()

  add_library(spillway_${name} INTERFACE)
  add_library(spillway::${name} ALIAS spillway_${name})
  set_target_properties(spillway_${name} PROPERTIES EXPORT_NAME ${name})
  target_compile_features(spillway_${name} INTERFACE cxx_std_20)
  target_link_libraries(spillway_${name} INTERFACE ${arg_DEPENDS})
  target_sources(spillway_${name} INTERFACE FILE_SET HEADERS BASE_DIRS ${PROJECT_SOURCE_DIR}/include FILES ${headers})
  set_property(GLOBAL APPEND PROPERTY SPILLWAY_BUILT_COMPONENTS ${name})
endfunction()

function(spillway_install_package)
  get_property(components GLOBAL PROPERTY SPILLWAY_BUILT_COMPONENTS)
  foreach(name IN LISTS components)
    install(TARGETS spillway_${name} EXPORT spillway_${name}_targets FILE_SET HEADERS)
    install(EXPORT spillway_${name}_targets NAMESPACE spillway:: FILE spillway-${name}-targets.cmake
      DESTINATION ${SPILLWAY_CMAKE_DIR})
  endforeach()
  write_basic_package_version_file(${PROJECT_BINARY_DIR}/spillway-config-version.cmake
    COMPATIBILITY SameMinorVersion ARCH_INDEPENDENT)
  install(FILES
    ${PROJECT_BINARY_DIR}/spillway-config-version.cmake
    ${PROJECT_SOURCE_DIR}/cmake/spillway-config.cmake
    ${PROJECT_SOURCE_DIR}/cmake/dependencies.cmake
    ${PROJECT_SOURCE_DIR}/cmake/Findliburing.cmake
    DESTINATION ${SPILLWAY_CMAKE_DIR})
endfunction()
