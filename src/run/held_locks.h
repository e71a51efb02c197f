// Which runs are being trained on this machine, without taking a lock: a shared lock, however short, would make a run
// that starts at that moment fail.
#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

namespace quern::train {

enum class LockStatus : uint8_t {
  kNone,       // no run.lock: the run ended in an orderly way, or never started
  kHeld,       // a process trains in the directory
  kLeft,       // nobody holds it: the process was killed, or the machine went down
  kElsewhere,  // written by a process on another machine, whose locks cannot be seen from here
};

// A snapshot of the locks that the kernel lists in /proc/locks. If there is no such file, a lock counts as held as long
// as the process that it names exists.
class HeldLocks {
 public:
  HeldLocks();

  // The status of the lock of the run in `folder`.
  LockStatus of(const std::filesystem::path& folder) const;

 private:
  struct Entry {
    int64_t pid;
    uint64_t device, inode;
  };
  std::vector<Entry> entries_;
  bool known_ = false;
};

}  // namespace quern::train
