// SPDX-License-Identifier: Apache-2.0
#include <spillway/spillway.hpp>

#include <cstdio>

char const* text_from_other_unit();

int main() {
  std::printf("spillway %d.%d.%d, %s\n", SPILLWAY_VERSION_MAJOR, SPILLWAY_VERSION_MINOR, SPILLWAY_VERSION_PATCH,
              text_from_other_unit());
  return spillway::make_error_code(spillway::errc::unsupported) ? 0 : 1;
}
