// What happens when a mapped file is cut short under us: a flag instead of the death of the process.
#pragma once

#include <cstddef>

namespace quern {

// A page of a mapping that its file no longer has, because somebody truncated it or because the disk failed, raises
// SIGBUS when it is touched. While a guard lives, a handler answers by putting zeros in the place of all of its
// mapping, for this process alone, and by setting a flag; the thread goes on with the zeros, and whoever uses the
// mapping looks at the flag before it believes what it has read. libwayland does the same for the buffers of its
// clients. Looking costs a load; asking fstat() before every call would cost 0.4 us, where adding a small row takes
// 0.12, and would not see what is cut a moment later.
//
// The handler is installed with the first guard, and again with a later one if somebody has set the signal to SIG_DFL
// or SIG_IGN meanwhile; it passes on what it is not meant for. Not covered: a handler for SIGBUS that somebody installs
// later and that does not pass on, and threads that block SIGBUS.
class MappingGuard {
 public:
  MappingGuard() noexcept = default;  // of nothing
  // Of a mapping that starts at a page and outlives the guard. Error when no handler can be installed.
  MappingGuard(void* begin, size_t bytes);
  MappingGuard(MappingGuard&& other) noexcept;
  MappingGuard& operator=(MappingGuard&& other) noexcept;
  ~MappingGuard();

  // Whether zeros have taken the place of the mapping. Seen by every thread that has read one of them.
  bool lost() const noexcept;

 private:
  struct Entry;
  static Entry* take_entry();
  friend struct BusErrors;
  Entry* entry_ = nullptr;
};

}  // namespace quern
