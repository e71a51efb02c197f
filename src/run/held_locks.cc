#include "run/held_locks.h"

#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <fstream>
#include <string>

#include "run/run_lock.h"

namespace quern::train {

namespace fs = std::filesystem;

// A line is "1: FLOCK  ADVISORY  WRITE 29939 fe:00:2146930 0 EOF"; one that waits for a lock has "->" after the number.
HeldLocks::HeldLocks() {
  std::ifstream file("/proc/locks");
  known_ = file.is_open();
  for (std::string line; std::getline(file, line);) {
    long long pid = 0;
    unsigned int major = 0, minor = 0;
    unsigned long long inode = 0;
    // NOLINTNEXTLINE(cert-err34-c): a line of the kernel; any that does not match is skipped
    if (std::sscanf(line.c_str(), "%*d: FLOCK %*s %*s %lld %x:%x:%llu", &pid, &major, &minor, &inode) != 4) continue;
    entries_.push_back({pid, makedev(major, minor), inode});
  }
}

LockStatus HeldLocks::of(const fs::path& folder) const {
  const fs::path path = folder / kLockFile;
  struct stat status = {};
  if (::lstat(path.c_str(), &status) != 0 || !is_run_lock(path)) return LockStatus::kNone;
  const auto holder = lock_holder(path);
  // Overlay file systems show another device number to stat() than to the kernel: the process tells as well.
  const bool held = std::any_of(entries_.begin(), entries_.end(), [&](const Entry& entry) {
    return entry.inode == status.st_ino && (entry.device == status.st_dev || (holder && entry.pid == holder->pid));
  });
  if (held) return LockStatus::kHeld;
  if (!holder) return LockStatus::kLeft;
  if (!holder->here) return LockStatus::kElsewhere;
  if (known_) return LockStatus::kLeft;
  const bool exists = ::kill(static_cast<pid_t>(holder->pid), 0) == 0 || errno == EPERM;
  return exists ? LockStatus::kHeld : LockStatus::kLeft;
}

}  // namespace quern::train
