// What the process occupies, as the system counts it.
#pragma once

#include <cstdint>

namespace quern {

// Bytes that are in memory now, and most that ever were; 0 where the system does not tell.
struct ProcessMemory {
  uint64_t resident = 0, peak = 0;
};
ProcessMemory process_memory();
inline uint64_t resident_bytes() { return process_memory().resident; }
inline uint64_t peak_resident_bytes() { return process_memory().peak; }

// From here on the peak is a new one; where the system does not allow it, it stays that of the whole process.
void forget_peak_resident_bytes();

}  // namespace quern
