// SPDX-License-Identifier: Apache-2.0
/// What a TransferEngine promises beyond what the compiler checks, as a list of broken laws. For users' own engines
/// too.
#pragma once

#include <spillway/core/bytes.hpp>
#include <spillway/core/error.hpp>
#include <spillway/io/file.hpp>
#include <spillway/io/posix_file_system.hpp>
#include <spillway/io/transfer_engine_concept.hpp>
#include <spillway/testing/detail/law_list.hpp>

#include <fcntl.h>

#include <algorithm>
#include <cerrno>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace spillway::inline v0::testing {

namespace detail {

template <TransferEngine Engine>
class transfer_engine_check {
 public:
  transfer_engine_check(Engine engine, std::string path) : engine_(std::move(engine)), path_(std::move(path)) {}

  [[nodiscard]] std::vector<std::string> run() {
    laws_.law("report", [this] { laws_.expect(!engine_->report().name.empty(), "no name"); });
    laws_.law("sizes", [this] { sizes(); });
    laws_.law("many at once", [this] { many_at_once(); });
    laws_.law("end of file", [this] { end_of_file(); });
    laws_.law("failure", [this] { failure(); });
    laws_.law("tokens", [this] { tokens(); });
    laws_.law("drain", [this] { drain(); });
    laws_.law("threads", [this] { threads(); });
    laws_.law("moves", [this] { moves(); });
    laws_.law("end", [this] { end(); });
    return laws_.take();
  }

 private:
  using file_system_type = typename Engine::file_system_type;
  using file_type = file<file_system_type>;
  using buffer = std::vector<std::byte>;
  using read_token = decltype(std::declval<Engine&>().read(file_reference{}, bytes{}, std::span<std::byte>{}));
  using write_token = decltype(std::declval<Engine&>().write(file_reference{}, bytes{}, std::span<std::byte const>{}));

  [[nodiscard]] file_type fresh() { return file_type::open(engine_->file_system(), path_, O_RDWR | O_CREAT | O_TRUNC); }
  static buffer pattern(std::size_t n, std::uint64_t seed) {
    buffer out(n);
    fill_pattern(out, seed);
    return out;
  }
  static buffer contents(file_type& f, bytes offset, std::size_t n) {
    buffer out(n);
    f.read_exact(offset, out);
    return out;
  }

  void sizes() {
    file_type f = fresh();
    for (std::size_t const n : {std::size_t{0}, std::size_t{1}, std::size_t{4096}, (std::size_t{5} << 20U) + 4097}) {
      for (std::uint64_t const offset : {0ULL, 12345ULL}) {
        std::string const what = std::to_string(n) + " B at offset " + std::to_string(offset);
        buffer const wanted = pattern(n, n + offset);
        write_token writing = engine_->write(f.reference(), bytes{offset}, wanted);
        laws_.expect(poll_until_done(writing), what + ": poll() of a write did not become true in 30 s");
        writing.wait();
        laws_.expect(!writing.status(), what + ": status() of a write that did not fail is an error");
        laws_.expect(contents(f, bytes{offset}, n) == wanted, what + ": the file has other bytes than were written");
        buffer got(n);
        engine_->read(f.reference(), bytes{offset}, got).wait();
        laws_.expect(got == wanted, what + ": read gives other bytes than the file has");
      }
    }
  }
  void many_at_once() {
    constexpr std::size_t count = 500;
    constexpr std::size_t size = 8192 + 1;
    file_type f = fresh();
    buffer const wanted = pattern(count * size, 7);
    std::vector<write_token> writing;
    for (std::size_t i = count; i-- > 0;) {
      writing.push_back(engine_->write(f.reference(), bytes{i * size}, std::span{wanted}.subspan(i * size, size)));
    }
    for (write_token& w : writing) w.wait();
    laws_.expect(contents(f, {}, wanted.size()) == wanted, "many writes: the file has other bytes");
    buffer got(wanted.size());
    std::vector<read_token> reading;
    for (std::size_t i = 0; i < count; ++i) {
      reading.push_back(engine_->read(f.reference(), bytes{i * size}, std::span{got}.subspan(i * size, size)));
    }
    for (std::size_t i = count; i-- > 0;) reading[i].wait();  // in another order than they were started
    laws_.expect(got == wanted, "many reads give other bytes");
  }
  /// The error that `token` ends with.
  template <class Token>
  std::optional<error> failure_of(Token token, std::string const& what) {
    try {
      token.wait();
      laws_.expect(false, what + ": wait() did not throw");
    } catch (error const& failed) {
      laws_.expect(token.poll(), what + ": poll() is false after wait() has thrown");
      laws_.expect(token.status() == failed.code(), what + ": status() is not the code that wait() threw");
      return failed;
    } catch (...) {
      laws_.expect(false, what + ": wait() threw something else than spillway::error");
    }
    return {};
  }
  void about(error const& failed, bytes offset, bytes wanted, bytes got, std::string const& what) {
    laws_.expect(failed.about().path == path_, what + ": the error names path '" + failed.about().path + "'");
    laws_.expect(failed.about().offset == offset.count, what + ": the error names another offset");
    laws_.expect(failed.about().wanted == wanted, what + ": the error names another length");
    laws_.expect(failed.about().got == got, what + ": got is " + to_string(failed.about().got));
  }
  void end_of_file() {
    constexpr std::size_t there = (3U << 20U) + 100;
    constexpr std::size_t asked = 8U << 20U;
    file_type f = fresh();
    buffer const wanted = pattern(there, 8);
    f.write_all({}, wanted);
    buffer got(asked);
    if (auto const failed = failure_of(engine_->read(f.reference(), bytes{100}, got), "a read over the end")) {
      laws_.expect(failed->code() == errc::short_transfer, "a read over the end is not short_transfer");
      about(*failed, bytes{100}, bytes{asked}, bytes{there - 100}, "a read over the end");
    }
    if (auto const failed = failure_of(engine_->read(f.reference(), bytes{there}, got), "a read at the end")) {
      laws_.expect(failed->code() == errc::short_transfer, "a read at the end is not short_transfer");
      about(*failed, bytes{there}, bytes{asked}, {}, "a read at the end");
    }
    engine_->read(f.reference(), bytes{there}, std::span<std::byte>{}).wait();  // nothing is there to be read
  }
  void failure() {
    file_type made = fresh();
    made.close();
    file_type f = file_type::open(engine_->file_system(), path_, O_RDONLY);
    buffer const wanted = pattern(100000, 9);
    if (auto const failed =
            failure_of(engine_->write(f.reference(), bytes{4096}, wanted), "a write to a read-only file")) {
      laws_.expect(failed->code() == std::error_code(EBADF, std::system_category()), "the error is not EBADF");
      about(*failed, bytes{4096}, bytes{wanted.size()}, {}, "a write to a read-only file");
    }
    laws_.expect(f.size() == bytes{}, "a failed write left bytes");
  }
  void tokens() {
    file_type f = fresh();
    buffer const wanted = pattern(100000, 10);
    write_token first = engine_->write(f.reference(), {}, wanted);
    write_token second = std::move(first);
    laws_.expect(first.poll(), "a moved-from token is not done");
    second.wait();
    second.wait();
    second = engine_->write(f.reference(), bytes{wanted.size()}, wanted);
    second = write_token{std::move(first)};  // assigning to a token ends its operation first
    laws_.expect(contents(f, bytes{wanted.size()}, wanted.size()) == wanted,
                 "a token was assigned to while it was writing");
    buffer got(2 * wanted.size());
    static_cast<void>(engine_->read(f.reference(), {}, got));
    laws_.expect(std::equal(wanted.begin(), wanted.end(), got.begin()), "a dropped read was not over with its token");
  }
  void drain() {
    file_type f = fresh();
    buffer const wanted = pattern(std::size_t{4} << 20U, 11);
    std::vector<write_token> writing;  // the same bytes again and again: too much to be over by chance
    for (std::size_t i = 0; i < 16; ++i) writing.push_back(engine_->write(f.reference(), {}, wanted));
    engine_->drain();
    laws_.expect(contents(f, {}, wanted.size()) == wanted, "drain() returned before the last byte was written");
    laws_.expect(writing.back().poll(), "the last token is not done after drain()");
    for (write_token& w : writing) laws_.expect(w.poll(), "a token is not done after drain()");
    engine_->drain();
  }
  void threads() {
    constexpr std::size_t workers = 4;
    constexpr std::size_t size = 300000;
    file_type f = fresh();
    buffer const wanted = pattern(workers * size, 12);
    std::vector<std::optional<write_token>> started(workers);
    std::vector<std::thread> running;
    for (std::size_t i = 0; i < workers; ++i) {
      running.emplace_back([&, i] {  // starts one that it leaves, and runs one itself
        auto const part = std::span{wanted}.subspan(i * size, size);
        started[i].emplace(engine_->write(f.reference(), bytes{i * size}, part.first(size / 2)));
        engine_->write(f.reference(), bytes{i * size + size / 2}, part.subspan(size / 2)).wait();
      });
    }
    for (std::thread& t : running) t.join();
    for (auto& w : started) w->wait();
    laws_.expect(contents(f, {}, wanted.size()) == wanted, "transfers on several threads: the file has other bytes");
  }
  void moves() {
    file_type f = fresh();
    buffer const wanted = pattern(std::size_t{4} << 20U, 13);
    write_token writing = engine_->write(f.reference(), {}, wanted);
    Engine elsewhere = std::move(*engine_);
    writing.wait();
    buffer got(wanted.size());
    f = file_type::open(elsewhere.file_system(), path_, O_RDWR);
    elsewhere.read(f.reference(), {}, got).wait();
    laws_.expect(got == wanted, "the engine moved while it was writing");
    f.close();
    *engine_ = std::move(elsewhere);
  }
  /// Only where the file can be reached without the engine, which owns the file system.
  void end() {
    static_cast<void>(engine_->file_system().unlink(path_.c_str()));
    if constexpr (std::same_as<file_system_type, posix_file_system>) {
      posix_file_system files;
      file_type f = file_type::open(files, path_, O_RDWR | O_CREAT | O_EXCL);
      static_cast<void>(files.unlink(path_.c_str()));
      buffer const wanted = pattern(std::size_t{64} * 65536, 14);
      std::vector<write_token> writing;
      for (std::size_t i = 0; i < 64; ++i) {
        writing.push_back(engine_->write(f.reference(), bytes{i * 65536}, std::span{wanted}.subspan(i * 65536, 65536)));
      }
      engine_.reset();
      laws_.expect(contents(f, {}, wanted.size()) == wanted, "the engine ended before its transfers had");
      for (write_token& w : writing) {
        laws_.expect(w.poll(), "a token is not done after its engine's end");
        w.wait();
      }
    }
  }

  std::optional<Engine> engine_;
  std::string path_;
  law_list laws_;
};

}  // namespace detail

/// Tries the laws of TransferEngine on `engine`, and ends it, with one file in `directory` of 10 MiB at most, which is
/// buffered and is named spillway-conformance. The broken laws, each with what was seen; empty: it passes.
/// Errors  none of the engine's: what it throws is a broken law.
template <TransferEngine Engine>
[[nodiscard]] std::vector<std::string> check_transfer_engine(Engine engine, std::string const& directory) {
  return detail::transfer_engine_check<Engine>{std::move(engine), directory + "/spillway-conformance"}.run();
}

}  // namespace spillway::inline v0::testing
