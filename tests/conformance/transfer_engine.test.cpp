// SPDX-License-Identifier: Apache-2.0
#include <spillway/io/probed_engine.hpp>
#include <spillway/io/thread_engine.hpp>
#include <spillway/testing/transfer_engine_conformance.hpp>

#include <fcntl.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <span>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "support/catch.hpp"
#include "support/fault_file_system.hpp"
#include "support/scratch.hpp"

using namespace spillway::literals;
using spillway::bytes;
using spillway::file_reference;
using spillway::thread_engine;
using spillway::transfer;
using spillway::testing::check_transfer_engine;

namespace {
std::vector<std::string> const none;
}

TEST_CASE("transfer engine conformance: thread_engine") {
  test::scratch const folder;
  CHECK(check_transfer_engine(thread_engine<>{}, folder.path()) == none);
  CHECK(check_transfer_engine(thread_engine<>{{.threads = 1, .request = 4_KiB}}, folder.path()) == none);
}

TEST_CASE("transfer engine conformance: thread_engine on a file system with short counts, EINTR and EAGAIN") {
  test::scratch const folder;
  test::fault_file_system files;
  files.plan().set(test::call::write, {.every = 3, .at_most = 1000});
  files.plan().set(test::call::read, {.every = 5, .error = EINTR});
  CHECK(check_transfer_engine(thread_engine<test::fault_file_system>{{.threads = 4}, files}, folder.path()) == none);
}

TEST_CASE("transfer engine conformance: probed_engine") {
  test::scratch const folder;
  CHECK(check_transfer_engine(spillway::probed_engine<thread_engine<>>{}, folder.path()) == none);
}

namespace {
/// Engines that break one law each: the suite must see it.
using base = thread_engine<>;
struct engine_that_ignores_the_offset : base {
  transfer write(file_reference f, bytes, std::span<std::byte const> from) { return base::write(f, {}, from); }
};
struct engine_that_stops_at_the_end : base {
  transfer read(file_reference f, bytes offset, std::span<std::byte> to) {
    bytes const size{static_cast<std::uint64_t>(file_system().size(f.handle).value)};
    std::uint64_t const left = size > offset ? (size - offset).count : 0;
    return base::read(f, offset, to.first(std::min<std::uint64_t>(left, to.size())));
  }
};
struct engine_that_forgets_the_path : base {
  transfer read(file_reference f, bytes offset, std::span<std::byte> to) {
    return base::read({f.handle, ""}, offset, to);
  }
};
struct engine_that_cuts_requests : base {
  transfer write(file_reference f, bytes offset, std::span<std::byte const> from) {
    return base::write(f, offset, from.first(std::min(from.size(), std::size_t{1} << 22U)));
  }
};
struct engine_that_swallows_failures : base {
  struct token : transfer {
    explicit token(transfer&& t) : transfer(std::move(t)) {}
    void wait() {
      try {
        transfer::wait();
      } catch (std::exception const&) {
      }
    }
  };
  token write(file_reference f, bytes offset, std::span<std::byte const> from) {
    return token{base::write(f, offset, from)};
  }
};
/// Starts a write when it is first asked for.
struct engine_that_does_not_drain {
  using file_system_type = base::file_system_type;
  class token {
   public:
    token(std::shared_ptr<base> e, file_reference f, bytes offset, std::span<std::byte const> from)
        : engine_(std::move(e)), file_(f), offset_(offset), from_(from) {}
    token(token&&) noexcept = default;
    token& operator=(token&& other) noexcept {
      finish();
      engine_ = std::move(other.engine_), file_ = other.file_, offset_ = other.offset_, from_ = other.from_;
      running_ = std::move(other.running_);
      return *this;
    }
    ~token() { finish(); }
    bool poll() noexcept { return started().poll(); }
    void wait() { started().wait(); }
    [[nodiscard]] std::error_code status() const noexcept { return running_.status(); }

   private:
    transfer& started() {
      if (auto const e = std::exchange(engine_, nullptr)) running_ = e->write(file_, offset_, from_);
      return running_;
    }
    void finish() noexcept {
      while (!started().poll()) {
      }
    }
    std::shared_ptr<base> engine_;
    file_reference file_;
    bytes offset_;
    std::span<std::byte const> from_;
    transfer running_;
  };
  file_system_type& file_system() { return inner->file_system(); }
  transfer read(file_reference f, bytes offset, std::span<std::byte> to) { return inner->read(f, offset, to); }
  token write(file_reference f, bytes offset, std::span<std::byte const> from) { return {inner, f, offset, from}; }
  void drain() noexcept { inner->drain(); }
  [[nodiscard]] spillway::engine_report report() const { return inner->report(); }

  std::shared_ptr<base> inner = std::make_shared<base>();
};
struct engine_without_a_name : base {
  [[nodiscard]] static spillway::engine_report report() { return {}; }
};
}  // namespace

TEMPLATE_TEST_CASE("transfer engine conformance: an engine that breaks a law is seen", "",
                   engine_that_ignores_the_offset, engine_that_stops_at_the_end, engine_that_forgets_the_path,
                   engine_that_cuts_requests, engine_that_swallows_failures, engine_that_does_not_drain,
                   engine_without_a_name) {
  test::scratch const folder;
  CHECK(check_transfer_engine(TestType{}, folder.path()) != none);
}
