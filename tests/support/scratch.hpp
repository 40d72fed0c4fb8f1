// SPDX-License-Identifier: Apache-2.0
/// A folder of the test's own, on the disk of the current folder (not in memory), removed with all in it.
#pragma once

#include <stdlib.h>

#include <algorithm>
#include <filesystem>
#include <stdexcept>
#include <string>
#include <system_error>
#include <vector>

namespace test {

class scratch {
 public:
  scratch() {
    std::string name = (std::filesystem::current_path() / "scratch-XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr) throw std::runtime_error("mkdtemp " + name);
    path_ = name;
  }
  scratch(scratch const&) = delete;
  scratch& operator=(scratch const&) = delete;
  ~scratch() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  [[nodiscard]] std::string const& path() const noexcept { return path_; }
  [[nodiscard]] std::string operator/(std::string const& name) const { return path_ + "/" + name; }
  /// The names in it, in order.
  [[nodiscard]] std::vector<std::string> names() const {
    std::vector<std::string> out;
    for (auto const& entry : std::filesystem::directory_iterator(path_))
      out.push_back(entry.path().filename().string());
    std::sort(out.begin(), out.end());
    return out;
  }

 private:
  std::string path_;
};

}  // namespace test
