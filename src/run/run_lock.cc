#include "run/run_lock.h"

#include <fcntl.h>
#include <fmt/chrono.h>
#include <fmt/format.h>
#include <pthread.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <ctime>
#include <mutex>
#include <string_view>
#include <system_error>
#include <vector>

#include "core/error.h"
#include "core/host_name.h"
#include "core/named_file.h"
#include "core/text.h"

namespace quern::train {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kMark = "quern run lock: ";
constexpr size_t kMaxText = 512;

// The descriptors of all locks of this process. A child created by fork() shares their open files and thus the locks:
// it would keep a run locked after its parent has ended. So the child closes them, which does not affect the parent's.
class OpenLocks {
 public:
  static OpenLocks& instance() {
    static OpenLocks* const locks = new OpenLocks;  // never destroyed: a fork may happen at any time
    return *locks;
  }
  // Blocks forks while it is held.
  std::unique_lock<std::mutex> guard() { return std::unique_lock(mutex_); }
  std::vector<int>& descriptors() { return descriptors_; }  // requires guard()

 private:
  OpenLocks() {
    pthread_atfork([] { instance().mutex_.lock(); }, [] { instance().mutex_.unlock(); },
                   [] { instance().close_all_in_child(); });
  }
  void close_all_in_child() {
    for (const int descriptor : descriptors_) ::close(descriptor);
    descriptors_.clear();
    mutex_.unlock();
  }

  std::mutex mutex_;
  std::vector<int> descriptors_;
};

std::string text_in(int descriptor) {
  std::string text(kMaxText, '\0');
  const ssize_t got = pread(descriptor, text.data(), text.size(), 0);
  text.resize(got > 0 ? static_cast<size_t>(got) : 0);
  return text;
}

// The beginning of a regular file; nullopt for anything else.
std::optional<std::string> text_of(const fs::path& file) {
  const int descriptor = open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
  if (descriptor < 0) return std::nullopt;
  struct stat status = {};
  std::optional<std::string> text;
  if (fstat(descriptor, &status) == 0 && S_ISREG(status.st_mode)) text = text_in(descriptor);
  ::close(descriptor);
  return text;
}

bool is_lock_text(std::string_view text) { return text.empty() || text.starts_with(kMark); }

// Whether this process holds a lock on that file. Requires OpenLocks::guard().
bool is_held_here(int descriptor) {
  struct stat wanted = {}, found = {};
  if (fstat(descriptor, &wanted) != 0) return false;
  const std::vector<int>& locks = OpenLocks::instance().descriptors();
  return std::any_of(locks.begin(), locks.end(), [&](int lock) {
    return fstat(lock, &found) == 0 && found.st_dev == wanted.st_dev && found.st_ino == wanted.st_ino;
  });
}

// The file is still empty if the other process has just started. Its text is untrusted: messages must not contain
// escape codes from it.
[[noreturn]] void refuse(const fs::path& folder, int descriptor) {
  if (is_held_here(descriptor)) {
    ::close(descriptor);
    throw Error("[run] {}: this process trains in this folder already; wait until it ends or choose another folder",
                folder.string());
  }
  std::string holder = text_in(descriptor);
  ::close(descriptor);
  holder = holder.starts_with(kMark) ? holder.substr(kMark.size()) : "";
  holder = in_quotes(holder.substr(0, holder.find('\n')), kMaxText);
  holder = holder.substr(1, holder.size() - 2);
  throw Error("[run] {}: another process trains in this folder ({}); wait until it ends or choose another folder",
              folder.string(), holder.empty() ? "it has only just started" : holder);
}

int open_lock(const fs::path& path) {
  const int descriptor = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0666);
  if (descriptor < 0) {
    throw Error("[run] {}: cannot open the lock of the run: {}", path.string(), std::generic_category().message(errno));
  }
  struct stat status = {};
  if (fstat(descriptor, &status) == 0 && S_ISREG(status.st_mode)) return descriptor;
  ::close(descriptor);
  throw Error("[run] {}: expected a regular file, the lock of the run; move it away", path.string());
}

// Writes the holder, for the error message of other processes. Ignores failures: a full disk must not prevent resuming.
void write_holder(int descriptor) {
  const std::string text = fmt::format("{}pid {} on {} since {:%Y-%m-%d %H:%M:%S} UTC\n", kMark, getpid(), host_name(),
                                       fmt::gmtime(std::time(nullptr)));
  static_cast<void>(ftruncate(descriptor, 0) == 0 && pwrite(descriptor, text.data(), text.size(), 0) > 0);
}

}  // namespace

RunLock::RunLock(const fs::path& folder, Observer& observer) : path_(folder / kLockFile) {
  int code = 0;
  {
    const auto no_fork = OpenLocks::instance().guard();
    code = acquire(folder);
    OpenLocks::instance().descriptors().push_back(descriptor_);
  }
  write_holder(descriptor_);
  if (code == 0) return;
  observer.on_warning(
      fmt::format("{}: the file system has no locks ({}); make sure that no other process trains in this folder",
                  path_.string(), std::generic_category().message(code)));
}

int RunLock::acquire(const fs::path& folder) {
  while (true) {
    descriptor_ = open_lock(path_);
    const int code = flock(descriptor_, LOCK_EX | LOCK_NB) == 0 ? 0 : errno;
    if (code == EWOULDBLOCK) refuse(folder, descriptor_);
    if (code == EINTR || !still_has_name(descriptor_, path_)) {  // removed by a process that ended meanwhile
      ::close(descriptor_);
      continue;
    }
    if (is_lock_text(text_in(descriptor_))) return code;
    ::close(descriptor_);
    throw Error("[run] {}: expected the lock of a run, found another file of that name; move it away", path_.string());
  }
}

// Removes the file before releasing the lock: afterwards it may belong to another process. A forked child does not own
// it.
RunLock::~RunLock() {
  const auto no_fork = OpenLocks::instance().guard();
  if (std::erase(OpenLocks::instance().descriptors(), descriptor_) == 0) return;
  if (still_has_name(descriptor_, path_)) unlink(path_.c_str());
  ::close(descriptor_);
}

bool is_run_lock(const fs::path& file) {
  const std::optional<std::string> text = text_of(file);
  return text && is_lock_text(*text);
}

// "quern run lock: pid 17 on host since ..."
std::optional<LockHolder> lock_holder(const fs::path& file) {
  const std::string text = text_of(file).value_or("");
  const std::string start = std::string(kMark) + "pid ";
  LockHolder holder;
  if (!text.starts_with(start)) return std::nullopt;
  const auto [end, code] = std::from_chars(text.data() + start.size(), text.data() + text.size(), holder.pid);
  if (code != std::errc()) return std::nullopt;
  holder.here = std::string_view(end).starts_with(fmt::format(" on {} since ", host_name()));
  return holder;
}

}  // namespace quern::train
