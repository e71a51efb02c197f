// Sets a flag, instead of letting the process die, when a mapped file is truncated.
#pragma once

#include <cstddef>

namespace quern {

// Touching a page of a mapping that its file no longer has, because the file was truncated or the disk failed, raises
// SIGBUS. While a guard exists, a signal handler responds by replacing the entire mapping with zeros, for this process
// only, and setting a flag. The thread continues with the zeros, and the user of the mapping must check the flag before
// trusting what it has read. libwayland does the same for the buffers of its clients. Checking costs one load; calling
// fstat() before every operation would cost 0.4 us, where adding a small row takes 0.12, and would miss a truncation a
// moment later.
//
// The handler is installed with the first guard, and again with a later one if the signal was reset to SIG_DFL or
// SIG_IGN in between. It forwards signals that are not meant for it. Not covered: a SIGBUS handler that is installed
// later and does not forward, and threads that block SIGBUS.
class MappingGuard {
 public:
  MappingGuard() noexcept = default;  // guards nothing
  // Guards a mapping that starts at a page boundary and outlives the guard. Throws Error if no handler can be
  // installed.
  MappingGuard(void* begin, size_t bytes);
  MappingGuard(MappingGuard&& other) noexcept;
  MappingGuard& operator=(MappingGuard&& other) noexcept;
  ~MappingGuard();

  // Whether the mapping was replaced by zeros. Visible to every thread that has read one of them.
  bool lost() const noexcept;

 private:
  struct Entry;
  static Entry* take_entry();
  friend struct BusErrors;
  Entry* entry_ = nullptr;
};

}  // namespace quern
