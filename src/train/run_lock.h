// One writer a run: who trains in a folder holds the lock on its run.lock.
#pragma once

#include <filesystem>

#include "train/observer.h"

namespace quern::train {

inline constexpr const char* kLockFile = "run.lock";

// Held from construction to destruction. The kernel gives the lock back however the process ends; a file that a kill
// left behind is taken over. It is removed at an orderly end. A child made by fork() does not inherit the lock. Those
// who only read a run (report, info, eval, generate) do not ask for it.
//
// Over NFS it holds between machines where the server supports locks. Where the file system has no locks at all,
// training goes on without one, after a warning.
class RunLock {
 public:
  // Error when another process, or another run in this one, holds it: says which process, on which machine, since when.
  // `folder` must exist.
  RunLock(const std::filesystem::path& folder, Observer& observer);
  RunLock(const RunLock&) = delete;
  RunLock& operator=(const RunLock&) = delete;
  ~RunLock();

 private:
  // Sets descriptor_. Returns why there is no lock on this file system; 0 when there is.
  int acquire(const std::filesystem::path& folder);

  std::filesystem::path path_;
  int descriptor_;
};

// Whether `file` is a run.lock that Quern made; an empty one is what a kill in the middle of that leaves.
bool is_run_lock(const std::filesystem::path& file);

}  // namespace quern::train
