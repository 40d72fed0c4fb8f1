// SPDX-License-Identifier: Apache-2.0
#include "train_gpt/options.hpp"

#include <spillway/core/bytes.hpp>
#include <spillway/core/error.hpp>

#include <cstdint>
#include <string>
#include <vector>

#include "support/catch.hpp"

namespace {

using namespace spillway::literals;

struct options {
  std::uint64_t steps = 300;
  double rate = 0.001;
  std::string text{};
  bool quiet = false;
  spillway::bytes device = 48_MiB;
  std::string offload = "file";
};

train_gpt::flag_set flags_of(options& o) {
  train_gpt::flag_set flags;
  flags.add("--steps", "optimizer steps", o.steps);
  flags.add("--rate", "peak learning rate", o.rate);
  flags.add("--text", "file to train on", o.text);
  flags.add("--quiet", "no progress line", o.quiet);
  flags.add("--device-memory", "budget of the accelerator", o.device);
  flags.add("--offload", "where optimizer state lives", o.offload, {"none", "host", "file"});
  return flags;
}

bool parse(options& o, std::vector<char const*> const& arguments) { return flags_of(o).parse(arguments); }

// What the error says, or nothing when the arguments are taken.
std::string refusal(std::vector<char const*> const& arguments) {
  options o;
  try {
    (void)parse(o, arguments);
  } catch (spillway::error const& e) {
    CHECK(e.code() == make_error_code(spillway::errc::invalid_option));
    return e.about().detail;
  }
  return {};
}

}  // namespace

TEST_CASE("options: every kind of flag is read, with a space or an equals sign") {
  options o;
  CHECK(parse(o, {"--steps", "12", "--rate=2.5e-4", "--text", "a=b.txt", "--quiet", "--device-memory=3GiB", "--offload",
                  "host"}));
  CHECK(o.steps == 12);
  CHECK(o.rate == 2.5e-4);
  CHECK(o.text == "a=b.txt");
  CHECK(o.quiet);
  CHECK(o.device == 3_GiB);
  CHECK(o.offload == "host");
}

TEST_CASE("options: flags that are not given keep their defaults") {
  options o;
  CHECK(parse(o, {}));
  CHECK(o.steps == 300);
  CHECK(o.rate == 0.001);
  CHECK(o.text.empty());
  CHECK_FALSE(o.quiet);
  CHECK(o.device == 48_MiB);
  CHECK(o.offload == "file");
}

TEST_CASE("options: sizes are plain bytes or have a binary unit") {
  struct {
    char const* text;
    std::uint64_t wanted;
  } const cases[] = {{"0", 0},          {"4096", 4096},       {"1KiB", 1024},
                     {"3MiB", 3145728}, {"2GiB", 2147483648}, {"1TiB", 1099511627776}};
  for (auto const& c : cases) {
    options o;
    CHECK(parse(o, {"--device-memory", c.text}));
    CHECK(o.device.count == c.wanted);
  }
  for (char const* bad :
       {"KiB", "1kb", "1 MiB", "-1", "1.5GiB", "0x10", "1MiBs", "18446744073709551616", "16777216TiB"}) {
    INFO(bad);
    CHECK(refusal({"--device-memory", bad}).find("--device-memory: '" + std::string(bad) + "'") == 0);
  }
}

TEST_CASE("options: an unknown flag or a stray word is refused by name") {
  CHECK(refusal({"--step", "3"}).find("--step: unknown flag") == 0);
  CHECK(refusal({"--step=3"}).find("--step: unknown flag") == 0);
  CHECK(refusal({"word"}).find("word: unknown flag") == 0);
  CHECK(refusal({"--quiet", "yes"}).find("yes: unknown flag") == 0);
  CHECK(refusal({""}).find(": unknown flag") == 0);
}

TEST_CASE("options: a flag given twice is refused, in either form, but a second parse starts anew") {
  CHECK(refusal({"--steps", "3", "--steps=3"}).find("--steps: given twice") == 0);
  CHECK(refusal({"--quiet", "--quiet"}).find("--quiet: given twice") == 0);
  options o;
  auto flags = flags_of(o);
  std::vector<char const*> const arguments{"--steps", "3"};
  CHECK(flags.parse(arguments));
  CHECK(flags.parse(arguments));
}

TEST_CASE("options: a missing value is refused") {
  CHECK(refusal({"--steps"}).find("--steps: needs a value") == 0);
  CHECK(refusal({"--steps", "--quiet"}).find("--steps: needs a value") == 0);
  CHECK(refusal({"--text="}).find("--text: needs a value") == 0);
  CHECK(refusal({"--text", ""}).find("--text: needs a value") == 0);
}

TEST_CASE("options: a malformed value is refused and changes nothing") {
  for (char const* bad : {"x", "12x", "-1", "1.5", "18446744073709551616", " 1"}) {
    options o;
    INFO(bad);
    CHECK_THROWS_AS(parse(o, {"--steps", bad}), spillway::error);
    CHECK(o.steps == 300);
  }
  for (char const* bad : {"x", "1e", "1.0f", "nan", "inf", "1e999"}) {
    options o;
    INFO(bad);
    CHECK_THROWS_AS(parse(o, {"--rate", bad}), spillway::error);
    CHECK(o.rate == 0.001);
  }
  CHECK(refusal({"--offload", "disk"}).find("--offload: 'disk' is not one of none|host|file") == 0);
  CHECK(refusal({"--quiet=yes"}).find("--quiet: takes no value") == 0);
}

TEST_CASE("options: --help stops the reading, and the text shows every flag with its kind and default") {
  options o;
  auto flags = flags_of(o);
  CHECK_FALSE(flags.parse(std::vector<char const*>{"--steps", "5", "--help", "--nonsense"}));
  std::string const text = flags.help();
  for (char const* line : {"--steps N", "optimizer steps [300]", "--rate X", "[0.001]", "--text TEXT", "[none]",
                           "--device-memory SIZE", "[48MiB]", "--offload none|host|file", "[file]"}) {
    INFO(line);
    CHECK(text.find(line) != std::string::npos);
  }
  CHECK(text.find("no progress line\n") != std::string::npos);
}
