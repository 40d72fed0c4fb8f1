// SPDX-License-Identifier: Apache-2.0
/// Saves whole training states below one directory, and restores them bit for bit.
#pragma once

#include <spillway/checkpoint/detail/choose_checkpoint.hpp>
#include <spillway/checkpoint/detail/read_checkpoint.hpp>
#include <spillway/checkpoint/detail/write_checkpoint.hpp>
#include <spillway/core/bytes.hpp>
#include <spillway/core/digest.hpp>
#include <spillway/durable/publish.hpp>
#include <spillway/durable/retention.hpp>
#include <spillway/durable/save_id.hpp>
#include <spillway/durable/step_directory.hpp>
#include <spillway/io/posix_file_system.hpp>
#include <spillway/state/training_state_concept.hpp>

#include <fcntl.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

namespace spillway::inline v0 {

struct checkpoint_options {
  unsigned keep_last = 0;  ///< complete checkpoints kept after a save; 0: all
  unsigned mode = 0666;    ///< of files, from creation on, less the umask; directories get x where this has r
};

struct saved_checkpoint {
  std::string path{};
  hash128 save_id{};
  bytes size{};  ///< of all files, manifest apart
  state_digest digest{};
  std::vector<std::string> warnings{};  ///< what went wrong after the commit: retention, LATEST
};

struct restored_checkpoint {
  std::uint64_t step = 0;
  std::string path{};
  hash128 save_id{};
  state_digest digest{};
  std::vector<std::string> notes{};  ///< unfinished saves passed over, a LATEST that names another
};

/// The digest that a save of this state would record, without writing. Equal digests: the same parameters, optimizer state and
/// leaves, whatever chunks, tiers and files hold them.
/// Errors   what exporting throws.
/// Threads  one at a time for one state.
/// Cost     reads all of the state once.
template <TrainingState State>
[[nodiscard]] state_digest digest_of(State& state) {
  state_digests digests;
  detail::leaf_collection const found = detail::collect_leaves(state);
  for (detail::leaf_view const& leaf : found.leaves()) {
    digests.leaves += detail::digest_of_leaf(leaf.about, leaf.value);
  }
  detail::with_spill(state, [&](std::string const&, auto& spill) { detail::add_spill(digests, spill); });
  return digests.all();
}

/// Every directory of a save below `root`, in the order in which they were saved, incomplete ones first, each with the reason.
/// An empty answer is the way to learn that a run starts afresh.
/// Errors   errno when `root` is there and can't be listed.
/// Threads  safe; takes no lock.
template <FileSystem FS = posix_file_system>
[[nodiscard]] std::vector<checkpoint_entry> list_checkpoints(std::string const& root, FS fs = {}) {
  return scan_checkpoints(fs, root);
}

/// Restore from one checkpoint's directory, wherever it was copied to.
/// Errors   as checkpoint_store::restore. Until all is verified, `state` is untouched.
/// Threads  one at a time for one state; takes no lock.
template <TrainingState State, FileSystem FS = posix_file_system>
restored_checkpoint restore_path(std::string const& path, State& state, FS fs = {}) {
  manifest record = read_manifest(fs, path);
  detail::open_checkpoint<FS> from{fs, path, std::move(record)};
  detail::read_state(from, state);
  return {from.record().step, path, from.record().save_id, from.record().digests.all(), {}};
}

/// One directory of checkpoints, open for saving: it holds the lock that keeps other writers out.
/// Threads  one at a time.
template <FileSystem FS = posix_file_system>
class checkpoint_store {
 public:
  /// Make `root` where it is missing, take its lock, and try that it can be written.
  /// Errors   errno with the path; errc::busy when another writer has it.
  explicit checkpoint_store(std::string root, checkpoint_options options = {}, FS fs = {})
      : fs_(std::move(fs)), root_(std::move(root)), options_(options) {
    while (root_.size() > 1 && root_.back() == '/') root_.pop_back();
    if (root_.empty())
      throw error{errc::invalid_option, {.where = "checkpoint_store", .detail = "the directory has no name"}};
    make_root();
    lock_ = file<FS>::open(fs_, root_ + "/.lock", O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, mode().file);
    lock_.lock();
    // The fault of a configuration is found now, not at the first save.
    std::string const probe = root_ + "/.probe-" + to_string(make_save_id());
    file<FS>::open(fs_, probe, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode().file).close();
    if (call_result const removed = fs_.unlink(probe.c_str()); !removed.ok())
      detail::raise(removed.error(), "unlink", probe);
  }
  checkpoint_store(checkpoint_store const&) = delete;
  checkpoint_store& operator=(checkpoint_store const&) = delete;
  ~checkpoint_store() = default;

  /// Save all of `state` as step `step`. When it returns, the checkpoint outlives a power failure. A step that is there is never
  /// replaced: if it holds this very state (its files are verified), it is returned, else it is an error.
  /// Pre      a boundary of the run: nothing changes `state` meanwhile. Not from a signal handler: set a flag there.
  /// Errors   durable_errc::already_exists; errno with path and offset; what exporting throws. The state, and every checkpoint that
  ///          was there, are as before, and no file of this save remains; saving again is allowed.
  /// Cost     writes the state once through the page cache; memory for one array of one chunk, and 4 MiB.
  template <TrainingState State>
  saved_checkpoint save(std::uint64_t step, State& state) {
    std::vector<std::string> warnings = collect_leftovers(fs_, root_);
    std::vector<checkpoint_entry> const entries = scan_checkpoints(fs_, root_);
    for (checkpoint_entry const& entry : entries) {
      if (entry.path == root_ + '/' + step_name(step)) return existing(entry, state, std::move(warnings));
      if (entry.code && entry.code.category() == std::system_category()) {
        warnings.push_back("its place in the order of saves is unknown: " + entry.why);
      }
    }
    manifest record = begin_record(step, entries);
    std::string path;
    {
      detail::leaf_collection const leaves = detail::collect_leaves(state);
      pending_checkpoint<FS> pending{fs_, root_, step, record.save_id, mode()};
      detail::write_files(fs_, pending, state, leaves, record);
      path = pending.commit(record);
    }
    try {
      point_latest(fs_, root_, step, record.save_id, mode());
    } catch (error const& failure) {
      warnings.push_back(failure.what());
    }
    for (std::string& warning : apply_retention(fs_, root_, options_.keep_last, path))
      warnings.push_back(std::move(warning));
    return describe(std::move(path), record, std::move(warnings));
  }

  /// Restore the checkpoint of that step; without a step the one saved last.
  /// Errors   durable_errc: nothing_there, only_incomplete, step_missing; what is wrong with the one that should be taken, with the
  ///          path and which other one is whole; schema_mismatch with all differences. Never another one than asked for. Until every
  ///          byte is verified `state` is untouched; a failure while a spilled state is imported leaves that member unusable.
  /// Cost     reads the files twice: once to verify, once to load. Leaves are held twice.
  template <TrainingState State>
  restored_checkpoint restore(State& state, std::optional<std::uint64_t> step = {}) {
    std::vector<checkpoint_entry> entries = scan_checkpoints(fs_, root_);
    detail::chosen_checkpoint chosen = detail::choose_checkpoint(fs_, root_, entries, step);
    manifest const& record = *chosen.entry.record;
    try {
      detail::open_checkpoint<FS> from{fs_, chosen.entry.path, record};
      detail::read_state(from, state);
    } catch (error const& failure) {
      bool const other_state =
          failure.code() == durable_errc::schema_mismatch || failure.code() == durable_errc::rule_mismatch;
      if (other_state) throw;  // the checkpoint is well: another one would not fit better
      detail::rethrow_with(failure, detail::whole_alternative(fs_, entries, chosen.entry.path));
    }
    if (!step) {
      if (std::string note = check_latest(fs_, root_, record.step, record.save_id); !note.empty()) {
        chosen.notes.push_back(std::move(note));
      }
    }
    return {record.step, chosen.entry.path, record.save_id, record.digests.all(), std::move(chosen.notes)};
  }

  [[nodiscard]] std::vector<checkpoint_entry> list() { return scan_checkpoints(fs_, root_); }
  [[nodiscard]] std::string const& root() const noexcept { return root_; }

 private:
  [[nodiscard]] create_mode mode() const noexcept { return {options_.mode}; }

  void make_root() {
    for (std::size_t end = root_.find('/', 1);; end = root_.find('/', end + 1)) {
      std::string const path = root_.substr(0, end);
      call_result const made = fs_.make_directory(path.c_str(), mode().directory());
      if (made.ok()) {
        std::size_t const slash = path.rfind('/');
        detail::sync_directory(fs_, slash == std::string::npos ? "." : slash == 0 ? "/" : path.substr(0, slash));
      } else if (end == std::string::npos && made.error() != EEXIST) {
        detail::raise(made.error(), "make directory", path);
      }
      if (end == std::string::npos) break;
    }
    file<FS>::open(fs_, root_, O_RDONLY | O_DIRECTORY | O_CLOEXEC).close();
  }

  [[nodiscard]] static manifest begin_record(std::uint64_t step, std::vector<checkpoint_entry> const& entries) {
    manifest record{.save_id = make_save_id(), .step = step};
    for (checkpoint_entry const& entry : entries) {
      if (entry.record && entry.record->sequence >= record.sequence) {
        record.sequence = entry.record->sequence + 1;
        record.parent = manifest_parent{entry.record->save_id, entry.record->step};
      }
    }
    return record;
  }

  [[nodiscard]] static saved_checkpoint describe(std::string path, manifest const& record,
                                                 std::vector<std::string> warnings) {
    bytes size{};
    for (file_record const& written : record.files) size += written.size;
    return {std::move(path), record.save_id, size, record.digests.all(), std::move(warnings)};
  }

  template <class State>
  saved_checkpoint existing(checkpoint_entry const& entry, State& state, std::vector<std::string> warnings) {
    if (!entry.complete) {
      throw error{durable_errc::already_exists,
                  {.where = "checkpoint save", .path = entry.path, .detail = "and it is damaged: " + entry.why}};
    }
    detail::open_checkpoint<FS> there{fs_, entry.path, *entry.record};
    there.verify();
    bool const same_schema = schema_hash(detail::collect_leaves(state).descriptions()) == entry.record->schema;
    state_digest const digest = digest_of(state);
    if (!same_schema || digest != entry.record->digests.all()) {
      throw error{durable_errc::already_exists,
                  {.where = "checkpoint save",
                   .path = entry.path,
                   .detail = "it holds the state " + to_string(entry.record->digests.all()) + ", this one is " +
                             to_string(digest) + "; move it away or save below another directory"}};
    }
    detail::sync_directory(fs_, root_);  // an earlier save may have failed in just that
    return describe(entry.path, *entry.record, std::move(warnings));
  }

  FS fs_;
  std::string root_;
  checkpoint_options options_;
  file<FS> lock_{};
};

}  // namespace spillway::inline v0
