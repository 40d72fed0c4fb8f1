// SPDX-License-Identifier: Apache-2.0
// A save or restore in a world where calls fail.
#include <spillway/checkpoint/checkpoint_store.hpp>

#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "support/catch.hpp"
#include "support/checkpoint_run.hpp"
#include "support/fault_file_system.hpp"
#include "support/scratch.hpp"

namespace {
using namespace spillway;
using test::call;
using test::run_state;
using test::train_to;
using store_type = checkpoint_store<test::fault_file_system>;

struct fixture {
  test::scratch folder{};
  std::string root = folder / "run";
  std::shared_ptr<test::fault_plan> plan = std::make_shared<test::fault_plan>();
  test::memory_spilled_state spill{test::small_model(), 2048};
  run_state state{.spill = &spill};
  test::memory_spilled_state other_spill{test::small_model(), 2048};
  run_state other{.spill = &other_spill};
  store_type store;

  explicit fixture(checkpoint_options options = {}) : store(root, options, test::fault_file_system{plan}) {}

  std::vector<std::string> names() const {
    std::vector<std::string> out;
    for (auto const& entry : std::filesystem::directory_iterator(root)) out.push_back(entry.path().filename().string());
    std::sort(out.begin(), out.end());
    return out;
  }
};
using list = std::vector<std::string>;
}  // namespace

TEST_CASE(
    "checkpoint faults: whichever call of a save fails, the one before loads, the state is intact, the next save "
    "works") {
  struct {
    call kind;
    int error;
  } const kinds[] = {{call::open, EMFILE},           {call::write, ENOSPC},          {call::write, EIO},
                     {call::allocate, ENOSPC},       {call::sync_data, EIO},         {call::sync, EIO},
                     {call::close, EDQUOT},          {call::make_directory, EACCES}, {call::rename, EIO},
                     {call::rename_exclusive, EROFS}};
  for (auto const& kind : kinds) {
    std::size_t failures = 0;
    for (std::uint64_t nth = 1;; ++nth) {
      INFO("call kind " << static_cast<int>(kind.kind) << " errno " << kind.error << " call " << nth);
      fixture f;
      train_to(f.state, 9);
      auto const before = f.store.save(9, f.state);
      train_to(f.state, 10);
      auto const digest = digest_of(f.state);

      f.plan->set(kind.kind, {.from = nth, .times = 1, .error = kind.error});
      bool failed = false;
      std::vector<std::string> warnings;
      try {
        warnings = f.store.save(10, f.state).warnings;
      } catch (error const& failure) {
        failed = true;
        INFO(failure.what());
        CHECK(failure.about().path.find(f.root) == 0);  // says where
        CHECK(failure.code() == std::error_code(kind.error, std::system_category()));
      }
      bool const hit = f.plan->count(kind.kind) >= nth;
      f.plan->clear();
      CHECK(digest_of(f.state) == digest);
      CHECK(f.store.restore(f.other, 9).save_id == before.save_id);
      auto const now = f.store.list();
      bool const committed = now.size() == 2 && now.back().complete && now.back().step == 10;
      if (!committed) {
        CHECK(failed);
        CHECK(f.names() == list{".lock", "LATEST", "step-00000009"});  // no temporary file remains
      } else {
        CHECK(f.store.restore(f.other).step == 10);  // what is there is whole
        CHECK(test::identical(f.state, f.other));
      }
      // Only what the save does not need may go wrong without failing it, and then it says so (closing what was only read apart).
      if (hit && !failed && kind.kind != call::close) CHECK_FALSE(warnings.empty());
      CHECK(f.store.save(10, f.state).digest == digest);
      CHECK(f.store.restore(f.other).digest == digest);
      if (!hit) break;
      failures += failed ? 1U : 0U;
      REQUIRE(nth < 100);
    }
    CHECK(failures > 0);
  }
}

TEST_CASE("checkpoint faults: short counts and interrupted calls change nothing") {
  fixture f;
  f.plan->set(call::write, {.at_most = 1000});
  f.plan->set(call::read, {.at_most = 777});
  f.plan->set(call::sync, {.every = 2, .error = EINTR});
  train_to(f.state, 9);
  auto const digest = f.store.save(9, f.state).digest;
  CHECK(f.store.restore(f.other).digest == digest);
  CHECK(test::identical(f.state, f.other));
}

TEST_CASE("checkpoint faults: a file system without preallocation is no obstacle") {
  fixture f;
  f.plan->set(call::allocate, {.error = EOPNOTSUPP});
  train_to(f.state, 9);
  auto const digest = f.store.save(9, f.state).digest;
  CHECK(f.store.restore(f.other).digest == digest);
}

TEST_CASE("checkpoint faults: a state that fails to be produced leaves no file and the old checkpoint") {
  fixture f;
  train_to(f.state, 1);
  f.store.save(1, f.state);
  f.spill.faults.export_throws_at = 2;
  train_to(f.state, 2);
  CHECK_THROWS_WITH(f.store.save(2, f.state), "export of a chunk fails");
  CHECK(f.names() == list{".lock", "LATEST", "step-00000001"});
  CHECK(f.store.restore(f.other).step == 1);
}

TEST_CASE("checkpoint faults: a failing read names file and call, and changes no leaf") {
  fixture f;
  train_to(f.state, 9);
  f.store.save(9, f.state);
  train_to(f.other, 1);
  auto const before = digest_of(f.other);
  bool hit = true;
  std::size_t verified = 0;
  for (std::uint64_t nth = 1; hit; ++nth) {
    f.plan->set(call::read, {.from = nth, .times = 1, .error = EIO});
    try {
      f.store.restore(f.other);
    } catch (error const& failure) {
      INFO(failure.what());
      CHECK(failure.code() == std::errc::io_error);
      CHECK(failure.about().path.find(f.root + "/step-00000009") == 0);
    }
    hit = f.plan->count(call::read) >= nth;
    bool const imported = f.other_spill.importing();
    if (hit && !imported && f.other.step == 1) {
      CHECK(digest_of(f.other) == before);  // verified first: nothing touched
      ++verified;
    }
    if (imported) {
      CHECK(f.other.step == 1);  // the spilled state is lost, and only that
      f.plan->clear();
      f.store.restore(f.other);  // another restore brings it back
      CHECK(f.other.step == 9);
      train_to(f.other, 1);
    }
    if (!hit) CHECK(f.other.step == 9);
    REQUIRE(nth < 1000);
  }
  CHECK(verified > 5);
}

TEST_CASE("checkpoint faults: an import that throws leaves the leaves as they were") {
  fixture f;
  train_to(f.state, 9);
  f.store.save(9, f.state);
  train_to(f.other, 1);
  f.other_spill.faults.import_throws_at = 1;
  CHECK_THROWS_WITH(f.store.restore(f.other), "import of a chunk fails");
  CHECK(f.other.step == 1);
  CHECK(f.other.note == "after 1");
  CHECK(f.other_spill.importing());
}

TEST_CASE("checkpoint retention: the last n saved stay, 0 keeps all, and a stale higher step does not live for ever") {
  for (unsigned const keep : {0U, 1U, 3U}) {
    fixture f{{.keep_last = keep}};
    for (std::uint64_t const step : {5000U, 200U, 201U, 202U, 203U}) {  // the run went back to 200
      train_to(f.state, step % 7);
      CHECK(f.store.save(step, f.state).warnings.empty());
    }
    auto const entries = f.store.list();
    CHECK(entries.size() == (keep == 0 ? 5 : keep));
    CHECK(entries.back().step == 203);
    if (keep == 3) CHECK(entries.front().step == 201);
  }
}

TEST_CASE("checkpoint retention: a failed save removes nothing") {
  fixture f{{.keep_last = 1}};
  train_to(f.state, 1);
  f.store.save(1, f.state);
  f.plan->set(call::rename_exclusive, {.error = EIO});
  CHECK_THROWS_AS(f.store.save(2, f.state), error);
  f.plan->clear();
  CHECK(f.store.restore(f.other).step == 1);
}

TEST_CASE("checkpoint retention: what it can't do is a warning, and the save stands") {
  for (auto const kind : {call::unlink, call::remove_directory}) {
    fixture f{{.keep_last = 1}};
    train_to(f.state, 1);
    f.store.save(1, f.state);
    f.plan->set(kind, {.error = EACCES});
    auto const saved = f.store.save(2, f.state);
    CHECK_FALSE(saved.warnings.empty());
    CHECK(saved.warnings.front().find(f.root) != std::string::npos);
    f.plan->clear();
    CHECK(f.store.restore(f.other).step == 2);
    CHECK(f.store.list().size() == 1);  // the rest is trash, not a checkpoint
    CHECK(f.store.save(3, f.state).warnings.empty());
    CHECK(f.names() == list{".lock", "LATEST", "step-00000003"});  // and was collected
  }
  fixture gone{{.keep_last = 1}};
  train_to(gone.state, 1);
  gone.store.save(1, gone.state);
  gone.plan->set(call::unlink, {.error = ENOENT});             // somebody else was faster
  CHECK(gone.store.save(2, gone.state).warnings.size() == 1);  // the directory is still full: only that is told
}

TEST_CASE("checkpoint retention: a checkpoint with files of somebody else in it is kept, with a warning") {
  fixture f{{.keep_last = 1}};
  train_to(f.state, 1);
  f.store.save(1, f.state);
  test::write_file(f.root + "/step-00000001/notes.txt", "the good one");
  auto const saved = f.store.save(2, f.state);
  REQUIRE(saved.warnings.size() == 1);
  CHECK(saved.warnings.front().find("step-00000001") != std::string::npos);
  CHECK(f.store.restore(f.other, 1).step == 1);
}

TEST_CASE("checkpoint retention: what killed saves left is collected by the next save, and only that") {
  fixture f;
  auto const other = f.root + "/step-1.tmp-mine";
  std::filesystem::create_directory(other);
  test::write_file(f.root + "/notes.txt", "mine");
  for (int kill = 0; kill < 5; ++kill) {
    auto const left =
        f.root + "/step-0000000" + std::to_string(kill) + ".tmp-0123456789abcdef0123456789abcde" + std::to_string(kill);
    std::filesystem::create_directory(left);
    test::write_file(left + "/model.safetensors", "half");
    test::write_file(left + "/MANIFEST.json.tmp", "half");
  }
  std::filesystem::create_directory(f.root + "/.trash-0123456789abcdef0123456789abcdef");
  test::write_file(f.root + "/.trash-0123456789abcdef0123456789abcdef/MANIFEST.json", "half removed");
  test::write_file(f.root + "/LATEST.tmp-0123456789abcdef0123456789abcdef", "half");
  train_to(f.state, 1);
  CHECK(f.store.save(1, f.state).warnings.empty());
  CHECK(f.names() == list{".lock", "LATEST", "notes.txt", "step-00000001", "step-1.tmp-mine"});
}

TEST_CASE("checkpoint faults: a process killed at any moment of its saves leaves the last acknowledged one to load") {
  test::scratch folder;
  auto const root = folder / "run";
  for (int round = 0; round < 8; ++round) {
    int told[2];
    REQUIRE(::pipe(told) == 0);
    pid_t const pid = ::fork();
    REQUIRE(pid >= 0);
    if (pid == 0) {
      test::memory_spilled_state spill{test::small_model(), 2048};
      run_state state{.spill = &spill};
      try {
        checkpoint_store store{root, {.keep_last = 2}};
        std::uint64_t step = 0;
        if (!store.list().empty()) step = store.restore(state).step;
        for (;;) {
          train_to(state, ++step);
          store.save(step, state);
          static_cast<void>(::write(told[1], &step, sizeof step));
        }
      } catch (...) {
        ::_exit(1);
      }
    }
    ::close(told[1]);
    std::uint64_t acknowledged = 0;
    std::uint64_t step = 0;
    int saves = 0;
    while (saves < 2 && ::read(told[0], &step, sizeof step) == sizeof step) {
      acknowledged = step;
      ++saves;
    }
    ::usleep(static_cast<useconds_t>(1000 * round));
    ::kill(pid, SIGKILL);
    int status = 0;
    REQUIRE(::waitpid(pid, &status, 0) == pid);
    CHECK(WIFSIGNALED(status));  // it had not failed by itself
    while (::read(told[0], &step, sizeof step) == sizeof step) acknowledged = step;
    ::close(told[0]);

    test::memory_spilled_state spill{test::small_model(), 2048};
    run_state state{.spill = &spill};
    checkpoint_store store{root};
    auto const restored = store.restore(state);
    CHECK(restored.step >= acknowledged);
    CHECK(restored.step <= acknowledged + 1);
    test::memory_spilled_state expected_spill{test::small_model(), 2048};
    run_state expected{.spill = &expected_spill};
    train_to(expected, restored.step);
    CHECK(test::identical(state, expected));
  }
}
