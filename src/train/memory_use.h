// Memory use of a run at one moment.
#pragma once

#include <cstdint>

namespace quern::train {

// In bytes. The first five fields are allocations of the run, and `pool` is memory it rents as needed. `resident` and
// `peak` are reported by the system for the whole process, or 0 if not available. Memory that was allocated but never
// written is not resident.
struct MemoryUse {
  uint64_t weights = 0;  // including packed copies
  uint64_t gradient = 0;
  uint64_t moments = 0;
  uint64_t batches = 0;  // prefetched
  uint64_t arena = 0;    // activations, working buffers and logits of all teams
  uint64_t pool = 0;     // rented, or retained for reuse; for evaluations
  uint64_t planned = 0;  // for the whole process, before the first step
  uint64_t resident = 0;
  uint64_t peak = 0;  // maximum of `resident`

  uint64_t allocated() const { return weights + gradient + moments + batches + arena + pool; }
  bool operator==(const MemoryUse&) const = default;
};

// The fields with their names in files, in file order.
struct MemoryField {
  const char* name;
  uint64_t MemoryUse::*member;
};
inline constexpr MemoryField kMemoryFields[] = {
    {"resident", &MemoryUse::resident}, {"peak", &MemoryUse::peak},         {"planned", &MemoryUse::planned},
    {"weights", &MemoryUse::weights},   {"gradient", &MemoryUse::gradient}, {"moments", &MemoryUse::moments},
    {"batches", &MemoryUse::batches},   {"arena", &MemoryUse::arena},       {"pool", &MemoryUse::pool}};

}  // namespace quern::train
