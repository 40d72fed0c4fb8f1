// SPDX-License-Identifier: Apache-2.0
#include "train_gpt/text.hpp"

#include <spillway/core/error.hpp>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <set>
#include <string>
#include <string_view>
#include <system_error>
#include <type_traits>
#include <vector>

#include "support/catch.hpp"

namespace {

namespace fs = std::filesystem;

// A directory of its own, gone at the end of the test.
struct scratch {
  scratch() {
    std::string name = (fs::temp_directory_path() / "train_gpt_text_XXXXXX").string();
    REQUIRE(::mkdtemp(name.data()) != nullptr);
    path = name;
  }
  ~scratch() { fs::remove_all(path); }
  scratch(scratch&&) = delete;
  scratch& operator=(scratch&&) = delete;

  std::string file(std::string const& name, std::string const& contents) {
    fs::create_directories((path / name).parent_path());
    std::ofstream(path / name, std::ios::binary) << contents;
    return (path / name).string();
  }

  fs::path path;
};

std::string as_string(std::vector<std::uint8_t> const& text) { return {text.begin(), text.end()}; }

// The error that a load ends in.
spillway::error failure(std::string const& file, std::string const& directory, std::size_t at_least) {
  try {
    (void)train_gpt::load_corpus(file, directory, at_least);
  } catch (spillway::error const& e) {
    return e;
  }
  FAIL("no error");
  std::abort();
}

}  // namespace

TEST_CASE("text: a file is read whole, bytes as they are") {
  scratch dir;
  std::string contents(200'000, 'x');
  contents[3] = '\0';
  contents[4] = static_cast<char>(0xff);
  contents[5] = '\r';
  contents[199'999] = 'y';
  CHECK(as_string(train_gpt::load_corpus(dir.file("a.txt", contents), "", 1)) == contents);
}

TEST_CASE("text: without a file the headers of a directory are read, sorted by path") {
  scratch dir;
  dir.file("b.hpp", "B");
  dir.file("a/z.hpp", "AZ");
  dir.file("a/b/c.hpp", "ABC");
  dir.file("c.cpp", "no");
  dir.file("README.md", "no");
  CHECK(as_string(train_gpt::load_corpus("", dir.path.string(), 1)) == "ABCAZB");
}

TEST_CASE("text: a file that is missing is named, with what the system says") {
  scratch dir;
  std::string const path = (dir.path / "missing.txt").string();
  auto const e = failure(path, "", 1);
  CHECK(e.code() == std::error_code(ENOENT, std::system_category()));
  CHECK(e.about().path == path);
}

TEST_CASE("text: a directory given as the file is named") {
  scratch dir;
  auto const e = failure(dir.path.string(), "", 1);
  CHECK(e.code() == std::error_code(EISDIR, std::system_category()));
  CHECK(e.about().path == dir.path.string());
}

TEST_CASE("text: a text shorter than one sequence is refused with both sizes") {
  scratch dir;
  std::string const path = dir.file("short.txt", "12345");
  auto const e = failure(path, "", 6);
  CHECK(e.code() == make_error_code(spillway::errc::short_transfer));
  CHECK(e.about().path == path);
  CHECK(e.about().wanted == spillway::bytes{6});
  CHECK(e.about().got == spillway::bytes{5});
  CHECK(train_gpt::load_corpus(path, "", 5).size() == 5);
}

TEST_CASE("text: an include directory that is missing or has no headers is named") {
  scratch dir;
  auto const empty = failure("", dir.path.string(), 1);
  CHECK(empty.code() == make_error_code(spillway::errc::short_transfer));
  CHECK(empty.about().path == dir.path.string());
  std::string const path = (dir.path / "missing").string();
  auto const missing = failure("", path, 1);
  CHECK(missing.code() == std::errc::no_such_file_or_directory);
  CHECK(missing.about().path == path);
}

TEST_CASE("sampler: a copy of its state goes on where the old one was") {
  std::vector<std::uint8_t> const text(5000);
  auto straight = train_gpt::sampler::seeded(9);
  std::vector<std::uint8_t const*> wanted;
  std::vector<train_gpt::sampler> saved;
  for (int i = 0; i < 100; ++i) {
    saved.push_back(straight);
    wanted.push_back(straight.next(text, 65).data());
  }
  CHECK(straight.samples_drawn == 100);
  for (std::size_t const stop : {0U, 1U, 37U, 99U}) {
    train_gpt::sampler resumed = saved[stop];
    CHECK(resumed.samples_drawn == stop);
    for (std::size_t i = stop; i < 100; ++i) CHECK(resumed.next(text, 65).data() == wanted[i]);
  }
  auto other = train_gpt::sampler::seeded(10);
  CHECK(other.next(text, 65).data() != wanted[0]);
}

TEST_CASE("sampler: windows lie inside the text and reach both of its ends") {
  std::vector<std::uint8_t> const text(80);
  auto s = train_gpt::sampler::seeded(1);
  std::set<std::ptrdiff_t> starts;
  for (int i = 0; i < 1000; ++i) {
    auto const window = s.next(text, 65);
    REQUIRE(window.size() == 65);
    starts.insert(window.data() - text.data());
  }
  CHECK(starts.size() == 16);
  CHECK(*starts.begin() == 0);
  CHECK(*starts.rbegin() == 15);
  std::vector<std::uint8_t> const one(65);
  CHECK(s.next(one, 65).data() == one.data());
}

TEST_CASE("sampler: its state to save is the random generator and the number of windows drawn") {
  auto s = train_gpt::sampler::seeded(3);
  s.samples_drawn = 4;
  std::vector<std::string> names;
  auto const visit = [&names](std::string_view name, auto const& value) {
    if constexpr (std::is_same_v<std::remove_cvref_t<decltype(value)>, std::uint64_t>) {
      names.push_back(std::string(name) + "=" + std::to_string(value));
    } else {
      names.push_back(std::string(name) + "=" + std::to_string(value.seed) + "," + std::to_string(value.counter));
    }
  };
  s.visit_state(visit);
  CHECK(names == std::vector<std::string>{"random=3,0", "samples_drawn=4"});
}
