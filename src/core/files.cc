#include "core/files.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cassert>
#include <cerrno>
#include <cstdio>
#include <memory>
#include <system_error>
#include <utility>
#include <vector>

#include "core/error.h"
#include "core/named_file.h"

namespace quern {
namespace {

namespace fs = std::filesystem;

// Adds advice for the most common failure.
std::string reason(int code) {
  std::string text = std::generic_category().message(code);
  if (code == ENOSPC || code == EDQUOT || code == EFBIG) text += "; free some space or write elsewhere";
  return text;
}

[[noreturn]] void fail(const fs::path& path, std::string_view what, int code) {
  throw Error("[files] {}: cannot {}: {}", path.native(), what, reason(code));
}

fs::path folder_of(const fs::path& path) { return path.has_parent_path() ? path.parent_path() : fs::path("."); }

// Returns `path` if a file may be renamed to it. Root could replace a device, and readers of a pipe would lose it. A
// symbolic link is itself replaced, but a link to a device or pipe (/dev/stdout) is not meant as a file.
fs::path replaceable(fs::path path) {
  std::error_code ignored;
  fs::file_status status = fs::symlink_status(path, ignored);
  const bool is_link = fs::is_symlink(status);
  if (is_link) status = fs::status(path, ignored);
  if (!fs::exists(status) || fs::is_regular_file(status) || (is_link && fs::is_directory(status))) return path;
  throw Error("[files] {}: expected a regular file or none, found {}; choose another name", path.native(),
              fs::is_directory(status) ? "a directory" : "a device, pipe or socket");
}

// A directory cannot be renamed over one that contains files. Exchanging the two names is atomic for all observers; the
// old directory then has the temporary name. File systems that cannot exchange need two steps, with the old directory
// renamed in between.
void put_in_place(const fs::path& temporary, const fs::path& path, Existing existing) {
  if (rename(temporary.c_str(), path.c_str()) == 0) return;
  const bool taken = errno == ENOTEMPTY || errno == EEXIST;
  if (!taken || existing == Existing::kKeep) fail(path, "rename to this name", errno);
  if (renameat2(AT_FDCWD, temporary.c_str(), AT_FDCWD, path.c_str(), RENAME_EXCHANGE) == 0) return;
  const fs::path aside = temporary_beside(path);
  if (rename(path.c_str(), aside.c_str()) != 0) fail(path, "replace", errno);
  if (rename(temporary.c_str(), path.c_str()) != 0) {
    const int code = errno;
    static_cast<void>(rename(aside.c_str(), path.c_str()));
    fail(path, "rename to this name", code);
  }
  static_cast<void>(rename(aside.c_str(), temporary.c_str()));
}

// Not every file system can refuse to replace a file; there, two programs that write one name at once are not told.
int rename_file(const fs::path& temporary, const fs::path& path, Existing existing) {
  if (existing == Existing::kKeep) {
    if (renameat2(AT_FDCWD, temporary.c_str(), AT_FDCWD, path.c_str(), RENAME_NOREPLACE) == 0) return 0;
    if (errno != EINVAL && errno != ENOSYS) return -1;
  }
  return rename(temporary.c_str(), path.c_str());
}

// Retries as long as remove_leftovers() removes the file as a leftover between its creation and its lock.
int create_locked(const fs::path& path, const fs::path& shown) {
  while (true) {
    const int descriptor = open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (descriptor < 0) fail(shown, "create", errno);
    if (lock_new_file(descriptor, path)) return descriptor;
    ::close(descriptor);
  }
}

int create_locked_directory(const fs::path& path, const fs::path& shown) {
  while (true) {
    if (mkdir(path.c_str(), 0777) != 0) fail(shown, "create", errno);
    const int descriptor = open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (descriptor < 0 && errno == ENOENT) continue;
    if (descriptor < 0) {
      const int code = errno;
      rmdir(path.c_str());
      fail(shown, "open", code);
    }
    if (lock_new_file(descriptor, path)) return descriptor;
    ::close(descriptor);
  }
}

}  // namespace

FileWriter::FileWriter(fs::path path, fs::path shown)
    : path_(std::move(path)),
      shown_(shown.empty() ? path_ : std::move(shown)),
      descriptor_(create_locked(path_, shown_)) {}

FileWriter::~FileWriter() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

void FileWriter::write(std::span<const std::byte> bytes) { write_at(written_, bytes); }

void FileWriter::rewrite_start(std::string_view text) {
  assert(text.size() <= written_);
  write_at(0, std::as_bytes(std::span(text)));
}

void FileWriter::write_at(uint64_t offset, std::span<const std::byte> bytes) {
  synced_ = false;
  while (!bytes.empty()) {
    const ssize_t done = ::pwrite(descriptor_, bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (done < 0 && errno == EINTR) continue;
    if (done <= 0) {
      const int code = done < 0 ? errno : ENOSPC;
      throw Error("[files] {}: cannot write more than {} bytes: {}", shown_.native(), written_, reason(code));
    }
    bytes = bytes.subspan(static_cast<size_t>(done));
    offset += static_cast<uint64_t>(done);
    written_ = std::max(written_, offset);
  }
}

void FileWriter::sync() {
  // Space may be allocated only now, so a full disk can show up here too.
  if (fsync(descriptor_) != 0) {
    throw Error("[files] {}: cannot sync {} bytes to disk: {}", shown_.native(), written_, reason(errno));
  }
  synced_ = true;
}

void FileWriter::close() {
  if (!synced_) sync();
  if (::close(std::exchange(descriptor_, -1)) != 0) fail(shown_, "close", errno);
}

AtomicFile::AtomicFile(fs::path path) : path_(replaceable(std::move(path))), writer_(temporary_beside(path_), path_) {}

AtomicFile::~AtomicFile() {
  if (!committed_) unlink(writer_.path().c_str());
}

// Closing releases the lock, so it comes last: a file that is complete but not yet renamed looks like a leftover.
void AtomicFile::commit(Existing existing) {
  writer_.sync();
  if (rename_file(writer_.path(), path_, existing) != 0) fail(path_, "rename to this name", errno);
  committed_ = true;
  writer_.close();
  sync_folder(folder_of(path_));
}

AtomicDirectory::AtomicDirectory(fs::path path)
    : path_(std::move(path)),
      temporary_(temporary_beside(path_)),
      descriptor_(create_locked_directory(temporary_, path_)) {}

AtomicDirectory::~AtomicDirectory() {
  std::error_code ignored;
  fs::remove_all(temporary_, ignored);  // uncommitted files, or the replaced directory
  ::close(descriptor_);
}

void AtomicDirectory::commit(Existing existing) {
  sync_folder(temporary_);
  put_in_place(temporary_, path_, existing);
  sync_folder(folder_of(path_));
}

// Some network file systems cannot sync a directory and return EINVAL; nothing more can be done for them.
void sync_folder(const fs::path& folder) {
  const int descriptor = open(folder.empty() ? "." : folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0) fail(folder, "open", errno);
  const int code = fsync(descriptor) == 0 ? 0 : errno;
  ::close(descriptor);
  if (code != 0 && code != EINVAL) fail(folder, "sync", code);
}

void create_folders(const fs::path& folder) {
  std::error_code ignored;
  if (folder.empty() || fs::is_directory(folder, ignored)) return;
  const fs::path path = folder.has_filename() ? folder : folder.parent_path();  // without a trailing slash
  create_folders(path.parent_path());
  const int code = mkdir(path.c_str(), 0777) == 0 ? 0 : errno;
  if (code == 0) return sync_folder(folder_of(path));
  if (code != EEXIST) fail(path, "create", code);
  if (!fs::is_directory(path, ignored)) fail(path, "create", ENOTDIR);
}

void write_file(const fs::path& path, std::string_view text) {
  AtomicFile file(path);
  file.writer().write(text);
  file.commit();
}

std::string read_file(const fs::path& path, size_t limit) {
  const int descriptor = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);  // a pipe must not block
  if (descriptor < 0) fail(path, "open", errno);
  const auto closer = [](const int* d) { ::close(*d); };
  const std::unique_ptr<const int, decltype(closer)> owner(&descriptor, closer);
  struct stat status = {};
  if (fstat(descriptor, &status) != 0) fail(path, "open", errno);
  if (!S_ISREG(status.st_mode)) throw Error("[files] {}: expected a regular file", path.native());
  std::string text;
  while (true) {
    constexpr size_t kPiece = 65536;
    const size_t before = text.size();
    text.resize(before + kPiece);
    const ssize_t done = ::read(descriptor, text.data() + before, kPiece);
    const int code = errno;
    text.resize(before + static_cast<size_t>(std::max<ssize_t>(done, 0)));
    if (done == 0) return text;
    if (done < 0 && code != EINTR) fail(path, "read", code);
    if (text.size() > limit) throw Error("[files] {}: expected at most {} bytes, found more", path.native(), limit);
  }
}

bool is_plain_file_name(std::string_view name) noexcept {
  return !name.empty() && name.size() <= 255 && name != "." && name != ".." &&
         name.find_first_of(std::string_view("/\0", 2)) == std::string_view::npos;
}

void remove_directory(const fs::path& path) {
  const fs::path aside = temporary_beside(path);
  if (rename(path.c_str(), aside.c_str()) != 0) fail(path, "remove", errno);
  std::error_code code;
  fs::remove_all(aside, code);
  if (code) fail(aside, "remove", code.value());
}

}  // namespace quern
