// SPDX-License-Identifier: Apache-2.0
/// How a directory of files becomes a checkpoint: all of it, or nothing, whenever the power fails.
#pragma once

#include <spillway/core/digest.hpp>
#include <spillway/core/error.hpp>
#include <spillway/durable/durable_errc.hpp>
#include <spillway/durable/manifest.hpp>
#include <spillway/durable/manifest_io.hpp>
#include <spillway/durable/step_directory.hpp>
#include <spillway/io/file.hpp>

#include <fcntl.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace spillway::inline v0 {

/// Permissions of what a save creates, from creation on, less what the umask takes away. Directories also get x where files get r.
struct create_mode {
  unsigned file = 0666;
  [[nodiscard]] constexpr unsigned directory() const noexcept { return file | (file & 0444U) >> 2U; }
};

namespace detail {

[[noreturn]] inline void raise(int code, std::string where, std::string path) {
  throw error{{code, std::system_category()}, {.where = std::move(where), .path = std::move(path)}};
}

/// The entries of a directory reach the medium.
template <FileSystem FS>
void sync_directory(FS& fs, std::string const& path) {
  auto directory = file<FS>::open(fs, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  directory.sync();
}

/// Write a small file under a name that only we use, make it durable, and give it its name in one step.
template <FileSystem FS>
void replace_file(FS& fs, std::string const& temporary, std::string const& path, std::string_view text, unsigned mode) {
  auto out = file<FS>::open(fs, temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode);
  try {
    out.write_all(bytes{}, std::as_bytes(std::span{text}));
    out.sync();
    out.close();
    if (call_result const renamed = fs.rename(temporary.c_str(), path.c_str()); !renamed.ok()) {
      raise(renamed.error(), "rename to", path);
    }
  } catch (...) {
    static_cast<void>(fs.unlink(temporary.c_str()));
    throw;
  }
}

inline constexpr char const* manifest_temporary = "MANIFEST.json.tmp";
inline constexpr char const* latest_name = "LATEST";

/// What LATEST holds: directory, save id and a hash of both.
[[nodiscard]] inline std::string latest_text(std::string_view directory, hash128 save_id) {
  std::string text = std::string(directory) + ' ' + to_string(save_id);
  return text + ' ' + to_string(hash_bytes(text)) + '\n';
}

}  // namespace detail

/// One save, from its temporary directory to its commit; what is left of it when it fails is removed. The FileSystem outlives it.
/// Threads  one at a time.
template <FileSystem FS = posix_file_system>
class pending_checkpoint {
 public:
  /// Make `root`/step-N.tmp-<save id>.
  /// Errors   errno with the path; a directory or link of that name is not followed and not used.
  pending_checkpoint(FS& fs, std::string root, std::uint64_t step, hash128 save_id, create_mode mode)
      : fs_(&fs),
        root_(std::move(root)),
        step_(step),
        save_id_(save_id),
        mode_(mode),
        temporary_(root_ + '/' + step_name(step) + ".tmp-" + to_string(save_id)) {
    if (call_result const made = fs_->make_directory(temporary_.c_str(), mode_.directory()); !made.ok()) {
      detail::raise(made.error(), "make directory", temporary_);
    }
  }
  pending_checkpoint(pending_checkpoint const&) = delete;
  pending_checkpoint& operator=(pending_checkpoint const&) = delete;
  ~pending_checkpoint() {
    if (committed_) return;
    for (std::string const& name : names_) static_cast<void>(fs_->unlink((temporary_ + '/' + name).c_str()));
    static_cast<void>(fs_->unlink((temporary_ + '/' + manifest_name).c_str()));
    static_cast<void>(fs_->remove_directory(temporary_.c_str()));
  }

  [[nodiscard]] hash128 save_id() const noexcept { return save_id_; }
  [[nodiscard]] create_mode mode() const noexcept { return mode_; }
  /// Where a file of that name has to be created, exclusively, and made durable before commit().
  [[nodiscard]] std::string path_of(std::string name) {
    std::string path = temporary_ + '/' + name;
    names_.push_back(std::move(name));
    return path;
  }

  /// Make the checkpoint exist: entries, manifest, name, each on the medium before the next.
  /// Pre      every file of `record` is durable.
  /// Errors   durable_errc::already_exists when the step has a directory; errno with the path. Thrown by the last sync, the
  ///          checkpoint is there and may or may not outlive a power failure.
  /// Returns  its path.
  std::string commit(manifest const& record) {
    std::string const text = write_manifest(record);
    detail::sync_directory(*fs_, temporary_);
    detail::replace_file(*fs_, temporary_ + '/' + detail::manifest_temporary, temporary_ + '/' + manifest_name, text,
                         mode_.file);
    detail::sync_directory(*fs_, temporary_);
    std::string const path = root_ + '/' + step_name(step_);
    if (call_result const renamed = fs_->rename_exclusive(temporary_.c_str(), path.c_str()); !renamed.ok()) {
      if (renamed.error() == EEXIST || renamed.error() == ENOTEMPTY) {
        throw error{durable_errc::already_exists, {.where = "checkpoint commit", .path = path}};
      }
      detail::raise(renamed.error(), "rename to", path);
    }
    committed_ = true;
    detail::sync_directory(*fs_, root_);
    return path;
  }

 private:
  FS* fs_;
  std::string root_;
  std::uint64_t step_;
  hash128 save_id_;
  create_mode mode_;
  std::string temporary_;
  std::vector<std::string> names_{};
  bool committed_ = false;
};

/// Point LATEST at a committed step. A hint for people and tools: nothing that matters reads it.
/// Errors   errno with the path; LATEST is then as it was.
template <FileSystem FS>
void point_latest(FS& fs, std::string const& root, std::uint64_t step, hash128 save_id, create_mode mode) {
  std::string const path = root + '/' + detail::latest_name;
  detail::replace_file(fs, path + ".tmp-" + to_string(save_id), path, detail::latest_text(step_name(step), save_id),
                       mode.file);
  detail::sync_directory(fs, root);
}

/// What is wrong with LATEST, given the checkpoint that a scan found newest; empty when it names that one.
/// Errors   none but memory.
template <FileSystem FS>
[[nodiscard]] std::string check_latest(FS& fs, std::string const& root, std::uint64_t step, hash128 save_id) {
  std::string const path = root + '/' + detail::latest_name;
  std::string const wanted = detail::latest_text(step_name(step), save_id);
  try {
    auto in = file<FS>::open(fs, path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    std::string text(wanted.size(), '\0');
    bool const size = in.size() == bytes{wanted.size()};
    if (size) in.read_exact(bytes{}, std::as_writable_bytes(std::span{text}));
    if (size && text == wanted) return {};
    return path + " does not name " + step_name(step) + ", the newest that a scan finds; it is only a hint";
  } catch (std::system_error const& failure) {
    return std::string(failure.what()) + "; it is only a hint";
  }
}

}  // namespace spillway::inline v0
