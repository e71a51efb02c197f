// File writes that leave either the old file or the new one, never a partial one, after a crash, a kill or a full disk.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>

#include "core/temporary_name.h"

namespace quern {

// A new file that is written from front to back. Every failure throws Error with the file, the bytes written so far and
// the system's message. A write beyond RLIMIT_FSIZE fails this way only if SIGXFSZ is ignored, so programs that must
// survive it have to ignore that signal.
class FileWriter {
 public:
  // Throws Error if the file already exists. Messages show `shown` instead of the path, for a file that will be
  // renamed.
  explicit FileWriter(std::filesystem::path path, std::filesystem::path shown = {});
  FileWriter(const FileWriter&) = delete;
  FileWriter& operator=(const FileWriter&) = delete;
  ~FileWriter();  // closes; without a preceding close() the contents are unspecified

  void write(std::span<const std::byte> bytes);
  void write(std::string_view text) { write(std::as_bytes(std::span(text))); }
  // Replaces bytes at the start of the file, which have been written: a header, once its numbers are known.
  void rewrite_start(std::string_view text);

  void sync();   // returns when the data is on disk
  void close();  // syncs first if necessary

  uint64_t written() const noexcept { return written_; }
  const std::filesystem::path& path() const noexcept { return path_; }

 private:
  void write_at(uint64_t offset, std::span<const std::byte> bytes);

  std::filesystem::path path_;
  std::filesystem::path shown_;
  int descriptor_;
  uint64_t written_ = 0;
  bool synced_ = false;
};

// What commit() does if something has the final name by then.
enum class Existing : uint8_t {
  kReplace,
  kKeep,  // throws Error, but lets a directory take the place of an empty one
};

// A file that appears, or replaces the one of that name, atomically at commit(). Until then its bytes are in a
// temporary file in the same directory (core/temporary_name.h); without commit() that file is removed.
class AtomicFile {
 public:
  // Throws Error, before writing anything, if the path is neither free, nor a regular file, nor a symbolic link to one.
  explicit AtomicFile(std::filesystem::path path);
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;
  ~AtomicFile();

  FileWriter& writer() noexcept { return writer_; }
  void commit(Existing existing = Existing::kReplace);  // call once

 private:
  std::filesystem::path path_;
  FileWriter writer_;
  bool committed_ = false;
};

// The same for a directory: the caller writes files into temporary() and closes them; commit() makes all of them appear
// under the final name at once. On any failure, removes what it has written.
class AtomicDirectory {
 public:
  explicit AtomicDirectory(std::filesystem::path path);
  AtomicDirectory(const AtomicDirectory&) = delete;
  AtomicDirectory& operator=(const AtomicDirectory&) = delete;
  ~AtomicDirectory();

  const std::filesystem::path& temporary() const noexcept { return temporary_; }
  void commit(Existing existing = Existing::kReplace);  // call once

 private:
  std::filesystem::path path_;
  std::filesystem::path temporary_;
  int descriptor_;  // holds a lock that tells remove_leftovers() that the directory is still being written
};

// Makes a rename, creation or removal in `folder` survive a power loss: directory entries reach the disk only when the
// directory itself is synced, whatever was done for the files in it. An empty path is the current directory. Throws
// Error if the directory cannot be opened or synced.
void sync_folder(const std::filesystem::path& folder);

// Creates `folder` and any missing parents, and syncs each entry. Throws Error if one cannot be created.
void create_folders(const std::filesystem::path& folder);

// Atomically replaces the contents of `path` with `text`.
void write_file(const std::filesystem::path& path, std::string_view text);

// Returns the entire file. Throws Error if it is missing, not a regular file, or larger than `limit`.
std::string read_file(const std::filesystem::path& path, size_t limit);

// Whether `name`, from an untrusted file, names an entry of a directory: no separators, not empty, not "." or "..".
bool is_plain_file_name(std::string_view name) noexcept;

// Removes a directory atomically: either it exists with all its files, or not at all.
void remove_directory(const std::filesystem::path& path);

// Removes the files and directories that killed processes of this user have left in `folder`: those with a temporary
// name (core/temporary_name.h) that no process is writing. Touches nothing else, whatever its name looks like.
void remove_leftovers(const std::filesystem::path& folder);

// The same for the temporaries that killed writers of this one file have left next to it.
void remove_leftovers_of(const std::filesystem::path& file);

}  // namespace quern
