// SPDX-License-Identifier: Apache-2.0
// A second translation unit with the same headers: both must link.
#include <spillway/spillway.hpp>

#include <string>

char const* text_from_other_unit() {
  static std::string const text = spillway::to_string(spillway::bytes{4096});
  return text.c_str();
}
