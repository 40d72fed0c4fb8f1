// SPDX-License-Identifier: Apache-2.0
/// What the model reads: a text as bytes, and which window of it comes when.
#pragma once

#include <spillway/core/bytes.hpp>
#include <spillway/core/counter_rng.hpp>
#include <spillway/core/error.hpp>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <system_error>
#include <vector>

namespace train_gpt {

namespace detail {
inline void append_file(std::string const& path, std::vector<std::uint8_t>& out) {
  auto const fail = [&path](std::error_code code) {
    throw spillway::error{code, {.where = "read text", .path = path}};
  };
  struct closer {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };
  std::unique_ptr<std::FILE, closer> const file(std::fopen(path.c_str(), "rb"));
  if (file == nullptr) fail(spillway::last_system_error());
  constexpr std::size_t piece = std::size_t{1} << 16U;
  for (;;) {
    std::size_t const before = out.size();
    out.resize(before + piece);
    errno = 0;
    std::size_t const got = std::fread(out.data() + before, 1, piece, file.get());
    std::error_code const code = spillway::last_system_error();
    out.resize(before + got);
    if (got == piece) continue;
    if (std::ferror(file.get()) != 0) fail(code);
    return;
  }
}

// Every *.hpp below `directory`, in the order of their paths, which no file system guarantees by itself.
inline std::vector<std::string> headers_below(std::string const& directory) {
  std::vector<std::string> paths;
  std::error_code code;
  std::filesystem::recursive_directory_iterator entry(directory, code);
  while (!code && entry != std::filesystem::recursive_directory_iterator()) {
    if (entry->path().extension() == ".hpp") paths.push_back(entry->path().string());
    entry.increment(code);
  }
  if (code) throw spillway::error{code, {.where = "list headers", .path = directory}};
  std::sort(paths.begin(), paths.end());
  return paths;
}
}  // namespace detail

/// The training text: `text_file`, or, when that is empty, all headers below `include_directory` one after the other.
/// Errors   spillway::error with the path: what the system says of it, or short_transfer when it has fewer than `at_least`.
/// Threads  safe.
[[nodiscard]] inline std::vector<std::uint8_t> load_corpus(std::string const& text_file,
                                                           std::string const& include_directory, std::size_t at_least) {
  std::vector<std::uint8_t> text;
  if (!text_file.empty()) {
    detail::append_file(text_file, text);
  } else {
    for (std::string const& header : detail::headers_below(include_directory)) detail::append_file(header, text);
  }
  if (text.size() < at_least) {
    throw spillway::error{spillway::errc::short_transfer,
                          {.where = "read text",
                           .path = text_file.empty() ? include_directory : text_file,
                           .wanted = spillway::bytes{at_least},
                           .got = spillway::bytes{text.size()},
                           .detail = "the text is shorter than one sequence"}};
  }
  return text;
}

/// Which windows of the text a run sees. Random numbers come by counter, so these few integers are all that a checkpoint must
/// hold, and a run that goes on from one sees what it would have seen.
struct sampler {
  spillway::counter_rng random{};
  std::uint64_t samples_drawn = 0;

  /// Of a fresh run. The stream is "sampler": apart from those of the initial weights.
  [[nodiscard]] static sampler seeded(std::uint64_t seed) {
    return {.random = {.seed = seed, .stream = 0x73616d706c6572, .counter = 0}};
  }

  /// The next window of `length` bytes, somewhere in the text.
  /// Pre      length <= text.size().
  /// Errors   none.
  /// Threads  one at a time.
  [[nodiscard]] std::span<std::uint8_t const> next(std::span<std::uint8_t const> text, std::size_t length) {
    std::uint64_t const high = random();
    std::uint64_t const low = random();
    ++samples_drawn;
    return text.subspan((high << 32U | low) % (text.size() - length + 1), length);
  }

  /// Declares the state to checkpoints, by name.
  template <class Visitor>
  void visit_state(Visitor& visit) {
    visit("random", random);
    visit("samples_drawn", samples_drawn);
  }
};

}  // namespace train_gpt
