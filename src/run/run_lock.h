// One writer per run: a process that trains in a directory holds the lock on its run.lock.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>

#include "run/observer.h"

namespace quern::train {

inline constexpr const char* kLockFile = "run.lock";

// Held from construction to destruction. The kernel releases the lock however the process ends; a file left by a killed
// process is taken over. The destructor removes the file. A child created by fork() does not inherit the lock. Commands
// that only read a run (report, info, eval, generate) do not take it.
//
// Over NFS it works across machines if the server supports locks. If the file system has no locks at all, training
// continues without one, after a warning.
class RunLock {
 public:
  // Error if another process, or another run in this process, holds the lock; the message names the process, its
  // machine and the start time. `folder` must exist.
  RunLock(const std::filesystem::path& folder, Observer& observer);
  RunLock(const RunLock&) = delete;
  RunLock& operator=(const RunLock&) = delete;
  ~RunLock();

 private:
  // Sets descriptor_. Returns 0, or an errno if this file system has no locks.
  int acquire(const std::filesystem::path& folder);

  std::filesystem::path path_;
  int descriptor_;
};

// The process that wrote a lock file.
struct LockHolder {
  int64_t pid = 0;
  bool here = false;  // on this machine
};

// Who wrote `file`; nullopt if it is not a run.lock that names its holder.
std::optional<LockHolder> lock_holder(const std::filesystem::path& file);

// Whether `file` is a run.lock that Quern wrote. An empty file counts: a kill during creation leaves one.
bool is_run_lock(const std::filesystem::path& file);

}  // namespace quern::train
