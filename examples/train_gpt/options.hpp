// SPDX-License-Identifier: Apache-2.0
/// Command-line flags: a table that binds each to a variable, whose value at that time is the default.
#pragma once

#include <spillway/core/bytes.hpp>
#include <spillway/core/error.hpp>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <variant>
#include <vector>

namespace train_gpt {

/// The flags of a program. Written `--name value` or `--name=value`; a bool is a switch and takes no value.
class flag_set {
 public:
  /// `target` may be std::uint64_t, double, std::string, bool or spillway::bytes (plain, or with KiB, MiB, GiB, TiB).
  /// Pre      name starts with "--" and is new; target outlives the set.
  /// Errors   none but std::bad_alloc.
  /// Threads  one at a time.
  template <class T>
  void add(std::string name, std::string help, T& target) {
    flags_.push_back({std::move(name), std::move(help), text_of(target), {}, &target});
  }
  /// A string that must be one of `choices`.
  void add(std::string name, std::string help, std::string& target, std::vector<std::string> choices) {
    flags_.push_back({std::move(name), std::move(help), target, std::move(choices), &target});
  }

  /// Reads the arguments (without the program's name) into the targets.
  /// Returns  false when --help is among them: nothing after it was read.
  /// Errors   spillway::error invalid_option, naming the flag: unknown, given twice, no value, or a value that is not of its
  ///          kind. Targets of the flags before it are set.
  /// Threads  one at a time.
  [[nodiscard]] bool parse(std::span<char const* const> arguments) {
    for (flag& f : flags_) f.seen = false;
    for (std::size_t i = 0; i < arguments.size(); ++i) {
      std::string_view const argument = arguments[i];
      if (argument == "--help") return false;
      std::size_t const equals = argument.find('=');
      flag& f = find(argument.substr(0, equals));
      if (f.seen) refuse(f.name, "given twice");
      f.seen = true;
      if (auto* const* const on = std::get_if<bool*>(&f.target)) {
        if (equals != std::string_view::npos) refuse(f.name, "takes no value");
        **on = true;
        continue;
      }
      std::string_view value;
      if (equals != std::string_view::npos) {
        value = argument.substr(equals + 1);
      } else if (i + 1 < arguments.size() && !std::string_view(arguments[i + 1]).starts_with("--")) {
        value = arguments[++i];
      }
      if (value.empty()) refuse(f.name, "needs a value");
      assign(f, value);
    }
    return true;
  }

  /// One line a flag: name, kind, what it does, default.
  [[nodiscard]] std::string help() const {
    std::vector<std::string> heads;
    std::size_t widest = 0;
    for (flag const& f : flags_) {
      heads.push_back("  " + f.name + kind_of(f));
      widest = std::max(widest, heads.back().size());
    }
    std::string text;
    for (std::size_t i = 0; i < flags_.size(); ++i) {
      flag const& f = flags_[i];
      text += heads[i] + std::string(widest + 2 - heads[i].size(), ' ') + f.help;
      if (!std::holds_alternative<bool*>(f.target)) text += " [" + (f.initial.empty() ? "none" : f.initial) + "]";
      text += '\n';
    }
    return text;
  }

 private:
  struct flag {
    std::string name;
    std::string help;
    std::string initial;
    std::vector<std::string> choices;
    std::variant<std::uint64_t*, double*, std::string*, bool*, spillway::bytes*> target;
    bool seen = false;
  };
  struct unit {
    std::string_view name;
    std::uint64_t size;
  };
  static constexpr std::array<unit, 4> units{
      {{"TiB", std::uint64_t{1} << 40U}, {"GiB", std::uint64_t{1} << 30U}, {"MiB", 1U << 20U}, {"KiB", 1U << 10U}}};

  [[noreturn]] static void refuse(std::string_view name, std::string_view why) {
    throw spillway::error{
        spillway::errc::invalid_option,
        {.where = "command line", .detail = std::string(name) + ": " + std::string(why) + " (--help lists the flags)"}};
  }

  flag& find(std::string_view name) {
    for (flag& f : flags_) {
      if (f.name == name) return f;
    }
    refuse(name, "unknown flag");
  }

  static std::string kind_of(flag const& f) {
    std::string kinds;
    for (std::string const& choice : f.choices) kinds += (kinds.empty() ? " " : "|") + choice;
    if (!kinds.empty()) return kinds;
    constexpr std::array<std::string_view, 5> names{" N", " X", " TEXT", "", " SIZE"};
    return std::string(names.at(f.target.index()));
  }

  static std::string text_of(std::uint64_t value) { return std::to_string(value); }
  static std::string text_of(std::string const& value) { return value; }
  static std::string text_of(bool) { return {}; }
  static std::string text_of(double value) {
    std::array<char, 32> text{};
    return {text.data(), std::to_chars(text.data(), text.data() + text.size(), value).ptr};
  }
  static std::string text_of(spillway::bytes value) {
    for (unit const& u : units) {
      if (value.count != 0 && value.count % u.size == 0)
        return std::to_string(value.count / u.size) + std::string(u.name);
    }
    return std::to_string(value.count);
  }

  // All of `value` as one number, or nothing.
  template <class T>
  static bool read(std::string_view value, T& out) {
    auto const [end, code] = std::from_chars(value.data(), value.data() + value.size(), out);
    return code == std::errc{} && end == value.data() + value.size();
  }
  static bool read_size(std::string_view value, std::uint64_t& out) {
    std::uint64_t scale = 1;
    for (unit const& u : units) {
      if (!value.ends_with(u.name)) continue;
      scale = u.size;
      value.remove_suffix(u.name.size());
      break;
    }
    std::uint64_t number = 0;
    return read(value, number) && spillway::checked_multiply(number, scale, out);
  }

  // Leaves the target alone unless the whole value is good.
  static void assign(flag const& f, std::string_view value) {
    std::string const shown = "'" + std::string(value) + "' is not ";
    std::uint64_t number = 0;
    double real = 0;
    if (auto* const* const to_number = std::get_if<std::uint64_t*>(&f.target)) {
      if (!read(value, number)) refuse(f.name, shown + "a whole number below 2^64");
      **to_number = number;
    } else if (auto* const* const to_real = std::get_if<double*>(&f.target)) {
      if (!read(value, real) || !std::isfinite(real)) refuse(f.name, shown + "a finite number");
      **to_real = real;
    } else if (auto* const* const to_size = std::get_if<spillway::bytes*>(&f.target)) {
      if (!read_size(value, number)) refuse(f.name, shown + "a size below 2^64, like 4096, 64KiB, 3MiB, 1GiB");
      **to_size = spillway::bytes{number};
    } else if (auto* const* const to_text = std::get_if<std::string*>(&f.target)) {
      bool const known = f.choices.empty() || std::find(f.choices.begin(), f.choices.end(), value) != f.choices.end();
      if (!known) refuse(f.name, shown + "one of" + kind_of(f));
      **to_text = value;
    }
  }

  std::vector<flag> flags_;
};

}  // namespace train_gpt
