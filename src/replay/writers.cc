#include "replay/writers.h"

#include <fmt/format.h>
#include <pthread.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <mutex>
#include <system_error>
#include <utility>
#include <vector>

#include "core/error.h"
#include "replay/slot_word.h"
#include "replay/writer_locks.h"

namespace quern::replay {
namespace {

// All Writers of this process, so that a child finds them. Never destroyed: fork() may happen during exit.
struct Registry {
  std::mutex mutex;  // no thread joins or leaves during a fork
  std::vector<Writers*> all;
};
Registry& registry() {
  static auto* const instance = new Registry;
  return *instance;
}

}  // namespace

void Writers::before_fork() { registry().mutex.lock(); }

void Writers::after_fork_in_parent() { registry().mutex.unlock(); }

void Writers::after_fork_in_child() {
  for (Writers* writers : registry().all) {
    if (writers->is_ours(writers->lock_)) ::close(writers->lock_);  // the lock is the parent's
    writers->lock_ = -1;
  }
  registry().mutex.unlock();
}

Writers::Writers(int descriptor, std::string path, std::string where, std::span<std::atomic<uint64_t>> words)
    : descriptor_(descriptor), path_(std::move(path)), where_(std::move(where)), words_(words) {
  struct stat status = {};
  if (fstat(descriptor_, &status) != 0)
    throw Error("{}: cannot read: {}", where_, std::generic_category().message(errno));
  device_ = status.st_dev;
  inode_ = status.st_ino;
  watch_forks();
  static const int handlers = pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child);
  if (handlers != 0) throw Error("{}: cannot watch for fork(): {}", where_, std::generic_category().message(handlers));
  {
    const std::lock_guard guard(registry().mutex);
    registry().all.push_back(this);
  }
  try {
    join();
  } catch (...) {
    const std::lock_guard guard(registry().mutex);
    std::erase(registry().all, this);
    throw;
  }
}

Writers::~Writers() {
  const std::lock_guard guard(registry().mutex);
  std::erase(registry().all, this);
  if (is_ours(lock_)) ::close(lock_);
}

uint16_t Writers::join() {
  const std::lock_guard guard(registry().mutex);
  const uint64_t seat = seat_.load(std::memory_order_relaxed);
  if (seat >> 16 == generation()) return static_cast<uint16_t>(seat);  // another thread was faster
  const int opened = open_again();
  const uint16_t index = take_index(opened);
  lock_ = opened;
  empty_abandoned(index);
  seat_.store(generation() << 16 | index, std::memory_order_release);  // pairs with the acquire in me()
  return index;
}

// The descriptor may refer to another file by now. The inode cannot: the mapping prevents its reuse.
bool Writers::is_ours(int descriptor) const noexcept {
  struct stat status = {};
  return fstat(descriptor, &status) == 0 && status.st_dev == device_ && status.st_ino == inode_;
}

// Through /proc, which works even if the name is gone; by name if there is no /proc, or in a child that has closed its
// inherited descriptors.
int Writers::open_again() const {
  const bool is_open = is_ours(descriptor_);
  const int opened = is_open ? open(fmt::format("/proc/self/fd/{}", descriptor_).c_str(), O_RDWR | O_CLOEXEC) : -1;
  if (opened >= 0) return opened;
  const int code = errno;
  const int named = open(path_.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
  if (named >= 0 && is_ours(named)) return named;
  if (named >= 0) ::close(named);
  if (is_open) throw Error("{}: cannot reopen it: {}", where_, std::generic_category().message(code));
  throw Error(
      "{}: cannot reopen it: its descriptor was closed and its name is gone; leave inherited descriptors open, "
      "or remove the buffer later",
      where_);
}

// Closes `opened` on failure. Starts at an index that depends on the process id, so that processes started together do
// not try the same bytes.
uint16_t Writers::take_index(int opened) const {
  const auto start = static_cast<uint32_t>(getpid());
  for (uint32_t i = 0; i < kMax; ++i) {
    const auto index = static_cast<uint16_t>((start + i) % kMax);
    struct flock lock = lock_on(index);
    if (fcntl(opened, F_OFD_SETLK, &lock) == 0) return index;
    const int code = errno;
    if (code == EAGAIN || code == EACCES) continue;
    ::close(opened);
    throw Error("{}: cannot lock a byte of it: {}", where_, std::generic_category().message(code));
  }
  ::close(opened);
  throw Error("{}: expected at most {} processes at once, found that many already", where_, kMax);
}

// Queries through lock_, which is open because the caller has joined: descriptor_ may be closed in a child.
bool Writers::is_dead(uint16_t writer) const {
  if (writer >= kMax) return true;  // not a valid index: the word is damaged
  const uint64_t seat = seat_.load(std::memory_order_relaxed);
  if (seat >> 16 == generation() && static_cast<uint16_t>(seat) == writer) return false;
  expect_lock();
  struct flock lock = lock_on(writer);
  return fcntl(lock_, F_OFD_GETLK, &lock) == 0 && lock.l_type == F_UNLCK;
}

void Writers::expect_lock() const {
  if (is_ours(lock_)) return;
  throw Error(
      "{}: other code has closed this process's descriptors for it; leave them open, or attach to it again afterwards",
      where_);
}

size_t Writers::count() {
  me();
  expect_lock();
  return 1 + count_locks(lock_);
}

// This process has locked `mine` but written nothing yet: words with that index were left by a dead process.
void Writers::empty_abandoned(uint16_t mine) {
  for (std::atomic<uint64_t>& word : words_) {
    uint64_t found = word.load(std::memory_order_relaxed);
    if (!is_busy(found) || (writer_of(found) != mine && !is_dead(writer_of(found)))) continue;
    word.compare_exchange_strong(found, 0, std::memory_order_relaxed);
  }
}

}  // namespace quern::replay
