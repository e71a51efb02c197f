// Memory use of the process, as reported by the system.
#pragma once

#include <cstdint>

namespace quern {

// Current and peak resident set size in bytes; 0 where the system does not report it.
struct ProcessMemory {
  uint64_t resident = 0, peak = 0;
};
ProcessMemory process_memory();
inline uint64_t resident_bytes() { return process_memory().resident; }
inline uint64_t peak_resident_bytes() { return process_memory().peak; }

// Resets the peak. Where the system does not allow this, the peak remains that of the process's lifetime.
void forget_peak_resident_bytes();

}  // namespace quern
