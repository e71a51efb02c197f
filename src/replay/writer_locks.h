// The bytes of a buffer's file that the processes using it have locked (see writers.h).
#pragma once

#include <fcntl.h>

#include <cstddef>
#include <cstdint>

namespace quern::replay {

inline constexpr uint16_t kMaxWriters = 4096;  // concurrently
inline constexpr off_t kFirstWriterByte = off_t{1}
                                          << 62;  // no file is this large; bytes beyond the end can be locked too

// A lock on the byte of this writer, for fcntl().
struct flock lock_on(uint16_t index);

// Locks that other open file descriptions hold. A system call for each.
size_t count_locks(int descriptor);

}  // namespace quern::replay
