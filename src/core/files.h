// Writing files so that a crash, a kill or a full disk leaves the old one or the new one, never half of one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>

#include "core/temporary_name.h"

namespace quern {

// A new file that is written from front to back. Every failure is an Error that names the file, the bytes that were
// written and what the system said. A write beyond RLIMIT_FSIZE is such a failure only where SIGXFSZ is ignored, as
// programs that promise not to die from it must do.
class FileWriter {
 public:
  // Error when it exists already. `shown` stands for the path in messages: for a file that is to have another name.
  explicit FileWriter(std::filesystem::path path, std::filesystem::path shown = {});
  FileWriter(const FileWriter&) = delete;
  FileWriter& operator=(const FileWriter&) = delete;
  ~FileWriter();  // closes; without close() before it nothing is promised about the contents

  void write(std::span<const std::byte> bytes);
  void write(std::string_view text) { write(std::as_bytes(std::span(text))); }

  void sync();   // until the disk has what was written
  void close();  // syncs first, where that is still to be done

  uint64_t written() const noexcept { return written_; }
  const std::filesystem::path& path() const noexcept { return path_; }

 private:
  std::filesystem::path path_;
  std::filesystem::path shown_;
  int descriptor_;
  uint64_t written_ = 0;
  bool synced_ = false;
};

// A file that appears, or replaces the one of that name, in the moment of commit(). Until then the bytes lie beside it
// under a temporary name (core/temporary_name.h); without commit() they are removed again.
class AtomicFile {
 public:
  // Error, before anything is written, when something other than a regular file or a symbolic link to one has the name.
  explicit AtomicFile(std::filesystem::path path);
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;
  ~AtomicFile();

  FileWriter& writer() noexcept { return writer_; }
  void commit();  // once

 private:
  std::filesystem::path path_;
  FileWriter writer_;
  bool committed_ = false;
};

// The same for a directory: the caller writes files into temporary() and closes them, commit() makes all of them
// appear under the name at once. Removes, on any failure, what it has written.
class AtomicDirectory {
 public:
  explicit AtomicDirectory(std::filesystem::path path);
  AtomicDirectory(const AtomicDirectory&) = delete;
  AtomicDirectory& operator=(const AtomicDirectory&) = delete;
  ~AtomicDirectory();

  const std::filesystem::path& temporary() const noexcept { return temporary_; }
  void commit();  // once

 private:
  std::filesystem::path path_;
  std::filesystem::path temporary_;
  int descriptor_;  // holds a lock that tells remove_leftovers() that somebody is still writing
};

// Makes a rename, creation or removal in `folder` survive a loss of power: the names in a directory reach the disk only
// when the directory is synced, whatever was done for the files in it. An empty path is the current folder. Error when
// the folder cannot be opened or synced.
void sync_folder(const std::filesystem::path& folder);

// Creates `folder` and those above it that are missing, and syncs each name. Error when one cannot be created.
void create_folders(const std::filesystem::path& folder);

// Replaces `path` by `text`, complete or not at all.
void write_file(const std::filesystem::path& path, std::string_view text);

// The whole file. Error when it is missing, not a regular file, or larger than `limit`.
std::string read_file(const std::filesystem::path& path, size_t limit);

// Removes a directory such that it is there with all its files or not at all.
void remove_directory(const std::filesystem::path& path);

// Removes the files and directories that killed processes of this user have left in `folder`: those with a temporary
// name (core/temporary_name.h) that nobody is writing. Nothing else is touched, whatever its name looks like.
void remove_leftovers(const std::filesystem::path& folder);

// The same for what killed writers of this one file have left beside it.
void remove_leftovers_of(const std::filesystem::path& file);

}  // namespace quern
