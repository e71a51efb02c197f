#include "core/files.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <memory>
#include <system_error>
#include <utility>
#include <vector>

#include "core/error.h"

namespace quern {
namespace {

namespace fs = std::filesystem;

// Also says how to go on after the failure that people really meet.
std::string reason(int code) {
  std::string text = std::generic_category().message(code);
  if (code == ENOSPC || code == EDQUOT || code == EFBIG) text += "; free some space or write elsewhere";
  return text;
}

[[noreturn]] void fail(const fs::path& path, std::string_view what, int code) {
  throw Error("[files] {}: cannot {}: {}", path.native(), what, reason(code));
}

fs::path folder_of(const fs::path& path) { return path.has_parent_path() ? path.parent_path() : fs::path("."); }

// Unique among processes and within this one. The name of the target is in it for people who find it.
fs::path temporary_beside(const fs::path& path) {
  static std::atomic<unsigned> count{0};
  const unsigned number = count.fetch_add(1, std::memory_order_relaxed);  // only has to differ
  return folder_of(path) /
         fmt::format("{}{}-{}-{}", kTemporaryPrefix, path.filename().native(), static_cast<long>(getpid()), number);
}

// Some network file systems cannot sync a directory and say EINVAL; there is nothing more to do for them.
void sync_directory(const fs::path& path) {
  const int descriptor = open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0) fail(path, "open", errno);
  const int code = fsync(descriptor) == 0 ? 0 : errno;
  ::close(descriptor);
  if (code != 0 && code != EINVAL) fail(path, "sync", code);
}

// A directory cannot be renamed over one that has files. Exchanging the two names is one step for everyone who looks;
// the old one then has the temporary name. File systems that cannot exchange get two steps, with the old one aside.
void put_in_place(const fs::path& temporary, const fs::path& path) {
  if (rename(temporary.c_str(), path.c_str()) == 0) return;
  if (errno != ENOTEMPTY && errno != EEXIST) fail(path, "rename to this name", errno);
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

bool in_use(const fs::path& leftover) {
  const int descriptor = open(leftover.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  if (descriptor < 0) return true;  // gone, or not ours
  const bool locked = flock(descriptor, LOCK_EX | LOCK_NB) != 0;
  ::close(descriptor);
  return locked;
}

void remove_unused(const fs::path& folder, std::string_view prefix) {
  std::error_code ignored;
  std::vector<fs::path> leftovers;
  for (fs::directory_iterator entry(folder, ignored), end; !ignored && entry != end; entry.increment(ignored)) {
    if (entry->path().filename().native().starts_with(prefix)) leftovers.push_back(entry->path());
  }
  for (const fs::path& leftover : leftovers) {
    if (!in_use(leftover)) fs::remove_all(leftover, ignored);
  }
}

}  // namespace

FileWriter::FileWriter(fs::path path, fs::path shown)
    : path_(std::move(path)),
      shown_(shown.empty() ? path_ : std::move(shown)),
      descriptor_(open(path_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666)) {
  if (descriptor_ < 0) fail(shown_, "create", errno);
  static_cast<void>(flock(descriptor_, LOCK_EX | LOCK_NB));  // for remove_leftovers()
}

FileWriter::~FileWriter() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

void FileWriter::write(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t done = ::write(descriptor_, bytes.data(), bytes.size());
    if (done < 0 && errno == EINTR) continue;
    if (done <= 0) {
      const int code = done < 0 ? errno : ENOSPC;
      throw Error("[files] {}: cannot write more than {} bytes: {}", shown_.native(), written_, reason(code));
    }
    bytes = bytes.subspan(static_cast<size_t>(done));
    written_ += static_cast<uint64_t>(done);
  }
}

void FileWriter::close() {
  // Space may be given out only now, so a full disk can show here too.
  if (fsync(descriptor_) != 0) {
    throw Error("[files] {}: cannot have {} bytes kept by the disk: {}", shown_.native(), written_, reason(errno));
  }
  if (::close(std::exchange(descriptor_, -1)) != 0) fail(shown_, "close", errno);
}

AtomicFile::AtomicFile(fs::path path) : path_(std::move(path)), writer_(temporary_beside(path_), path_) {}

AtomicFile::~AtomicFile() {
  if (!committed_) unlink(writer_.path().c_str());
}

void AtomicFile::commit() {
  writer_.close();
  if (rename(writer_.path().c_str(), path_.c_str()) != 0) fail(path_, "rename to this name", errno);
  committed_ = true;
  sync_directory(folder_of(path_));
}

AtomicDirectory::AtomicDirectory(fs::path path) : path_(std::move(path)), temporary_(temporary_beside(path_)) {
  if (mkdir(temporary_.c_str(), 0777) != 0) fail(path_, "create", errno);
  descriptor_ = open(temporary_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor_ < 0) {
    const int code = errno;
    rmdir(temporary_.c_str());
    fail(path_, "open", code);
  }
  static_cast<void>(flock(descriptor_, LOCK_EX | LOCK_NB));
}

AtomicDirectory::~AtomicDirectory() {
  std::error_code ignored;
  fs::remove_all(temporary_, ignored);  // what was not committed, or what it replaced
  ::close(descriptor_);
}

void AtomicDirectory::commit() {
  sync_directory(temporary_);
  put_in_place(temporary_, path_);
  sync_directory(folder_of(path_));
}

void sync_folder(const fs::path& folder) { sync_directory(folder.empty() ? fs::path(".") : folder); }

void write_file(const fs::path& path, std::string_view text) {
  AtomicFile file(path);
  file.writer().write(text);
  file.commit();
}

std::string read_file(const fs::path& path, size_t limit) {
  const int descriptor = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);  // a pipe must not make us wait
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

void remove_directory(const fs::path& path) {
  const fs::path aside = temporary_beside(path);
  if (rename(path.c_str(), aside.c_str()) != 0) fail(path, "remove", errno);
  std::error_code code;
  fs::remove_all(aside, code);
  if (code) fail(aside, "remove", code.value());
}

void remove_leftovers(const fs::path& folder) { remove_unused(folder, kTemporaryPrefix); }

void remove_leftovers_of(const fs::path& file) {
  remove_unused(folder_of(file), fmt::format("{}{}-", kTemporaryPrefix, file.filename().native()));
}

}  // namespace quern
