#include "replay/writer_locks.h"

namespace quern::replay {

struct flock lock_on(uint16_t index) {
  struct flock lock = {};
  lock.l_type = F_WRLCK;
  lock.l_whence = SEEK_SET;
  lock.l_start = kFirstWriterByte + index;
  lock.l_len = 1;
  return lock;
}

// Asks for the first lock in the rest of the range, until there is none.
size_t count_locks(int descriptor) {
  size_t found = 0;
  for (off_t next = kFirstWriterByte; next < kFirstWriterByte + kMaxWriters; ++found) {
    struct flock lock = lock_on(0);
    lock.l_start = next;
    lock.l_len = kFirstWriterByte + kMaxWriters - next;
    if (fcntl(descriptor, F_OFD_GETLK, &lock) != 0 || lock.l_type == F_UNLCK) break;
    next = lock.l_start + 1;
  }
  return found;
}

}  // namespace quern::replay
