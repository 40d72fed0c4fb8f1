// SPDX-License-Identifier: Apache-2.0
// The order of the calls that make a save durable. A test that no power failure can be part of: each sync is where it has to be.
#include <spillway/checkpoint/checkpoint_store.hpp>

#include <fcntl.h>

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "support/catch.hpp"
#include "support/checkpoint_run.hpp"
#include "support/scratch.hpp"

namespace {
using namespace spillway;

struct call_log {
  std::vector<std::string> lines{};
  std::map<int, std::string> open{};
  std::string root{};
  std::string save_id{};

  /// The path below the root, with the save's id as ID.
  std::string shown(std::string path) const {
    if (path.substr(0, root.size()) == root) path = path.size() == root.size() ? "." : path.substr(root.size() + 1);
    auto const id = path.find("tmp-");
    if (id != std::string::npos) path.replace(id + 4, 32, "ID");
    return path;
  }
};

/// The machine's file system; writes down what makes and orders durable things, one line for writes in a row.
class recording_file_system : public posix_file_system {
 public:
  explicit recording_file_system(std::shared_ptr<call_log> log) : log_(std::move(log)) {}

  call_result open(char const* path, int flags, unsigned mode) {
    auto const opened = posix_file_system::open(path, flags, mode);
    if (opened.ok()) log_->open[static_cast<int>(opened.value)] = log_->shown(path);
    if ((flags & O_CREAT) != 0 && (flags & O_EXCL) != 0) add("create " + log_->shown(path));
    return opened;
  }
  call_result write(spillway::open_handle f, std::byte const* from, std::size_t n, std::uint64_t offset) {
    std::string const line = (offset == 0 && n == 8 ? "write length of " : "write ") + log_->open[f.id];
    if (log_->lines.empty() || log_->lines.back() != line) add(line);
    return posix_file_system::write(f, from, n, offset);
  }
  call_result sync_data(spillway::open_handle f) {
    add("sync data of " + log_->open[f.id]);
    return posix_file_system::sync_data(f);
  }
  call_result sync(spillway::open_handle f) {
    add("sync " + log_->open[f.id]);
    return posix_file_system::sync(f);
  }
  call_result make_directory(char const* path, unsigned mode) {
    add("make " + log_->shown(path));
    return posix_file_system::make_directory(path, mode);
  }
  call_result rename(char const* from, char const* to) {
    add("rename " + log_->shown(from) + " to " + log_->shown(to));
    return posix_file_system::rename(from, to);
  }
  call_result rename_exclusive(char const* from, char const* to) {
    add("rename, replacing nothing, " + log_->shown(from) + " to " + log_->shown(to));
    return posix_file_system::rename_exclusive(from, to);
  }
  call_result unlink(char const* path) {
    add("unlink " + log_->shown(path));
    return posix_file_system::unlink(path);
  }

 private:
  void add(std::string line) { log_->lines.push_back(std::move(line)); }
  std::shared_ptr<call_log> log_;
};
static_assert(FileSystem<recording_file_system>);
}  // namespace

TEST_CASE("commit order: every byte and name is on the medium before what relies on it") {
  test::scratch folder;
  auto const log = std::make_shared<call_log>();
  log->root = folder / "run";
  checkpoint_store<recording_file_system> store{log->root, {.keep_last = 1}, recording_file_system{log}};
  test::memory_spilled_state spill{test::small_model(), 1 << 20U};
  test::run_state state{.spill = &spill};
  test::train_to(state, 8);
  store.save(1, state);
  log->lines.clear();
  test::train_to(state, 9);
  store.save(2, state);

  std::string const dir = "step-00000002.tmp-ID";
  std::vector<std::string> expected{"make " + dir};
  for (std::string const name : {"leaves-00000.safetensors", "model.safetensors", "optimizer-00000.safetensors"}) {
    std::string const path = dir + '/' + name;
    for (char const* step : {"create ", "write length of ", "write ", "sync data of ", "write length of ", "sync "}) {
      expected.push_back(step + path);
    }
  }
  for (std::string const& line : std::vector<std::string>{
           "sync " + dir, "create " + dir + "/MANIFEST.json.tmp", "write " + dir + "/MANIFEST.json.tmp",
           "sync " + dir + "/MANIFEST.json.tmp", "rename " + dir + "/MANIFEST.json.tmp to " + dir + "/MANIFEST.json",
           "sync " + dir, "rename, replacing nothing, " + dir + " to step-00000002", "sync .",
           // committed
           "create LATEST.tmp-ID", "write LATEST.tmp-ID", "sync LATEST.tmp-ID", "rename LATEST.tmp-ID to LATEST",
           "sync ."}) {
    expected.push_back(line);
  }
  REQUIRE(log->lines.size() > expected.size());
  std::vector<std::string> const committed(log->lines.begin(),
                                           log->lines.begin() + static_cast<std::ptrdiff_t>(expected.size()));
  CHECK(committed == expected);
  // Retention, only now: the name goes first, durably, then the files.
  auto const& after = log->lines;
  std::size_t at = expected.size();
  CHECK(after[at].find("rename, replacing nothing, step-00000001 to .trash-") == 0);
  CHECK(after[at + 1] == "sync .");
  for (at += 2; at < after.size(); ++at) CHECK(after[at].find("unlink .trash-") == 0);
}

TEST_CASE("commit order: a new root is durable in the directory that holds it") {
  test::scratch folder;
  auto const log = std::make_shared<call_log>();
  log->root = folder.path();
  checkpoint_store<recording_file_system> store{folder / "a/b", {}, recording_file_system{log}};
  std::vector<std::string> made;
  for (auto const& line : log->lines) {
    bool const ours = line == "make a" || line == "make a/b" || line == "sync ." || line == "sync a";
    if (ours) made.push_back(line);
  }
  CHECK(made == std::vector<std::string>{"make a", "sync .", "make a/b", "sync a"});
}
