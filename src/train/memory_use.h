// What a run occupies at one moment.
#pragma once

#include <cstdint>

namespace quern::train {

// Bytes. The first five are what the run has allocated, `pool` what it rents as it goes; resident and peak are those of
// the whole process as the system counts it, 0 where it does not tell. Memory that was allocated and never written is
// not resident.
struct MemoryUse {
  uint64_t weights = 0;  // with the copies that are packed for products
  uint64_t gradient = 0;
  uint64_t moments = 0;
  uint64_t batches = 0;  // read ahead
  uint64_t arena = 0;    // activations, working buffers and logits of all teams
  uint64_t pool = 0;     // rented or kept for the next to rent: evaluations
  uint64_t planned = 0;  // for the whole process, before the first step
  uint64_t resident = 0;
  uint64_t peak = 0;  // most that was ever resident

  uint64_t allocated() const { return weights + gradient + moments + batches + arena + pool; }
  bool operator==(const MemoryUse&) const = default;
};

// Its fields by the names that files give them, in their order.
struct MemoryField {
  const char* name;
  uint64_t MemoryUse::*member;
};
inline constexpr MemoryField kMemoryFields[] = {
    {"resident", &MemoryUse::resident}, {"peak", &MemoryUse::peak},         {"planned", &MemoryUse::planned},
    {"weights", &MemoryUse::weights},   {"gradient", &MemoryUse::gradient}, {"moments", &MemoryUse::moments},
    {"batches", &MemoryUse::batches},   {"arena", &MemoryUse::arena},       {"pool", &MemoryUse::pool}};

}  // namespace quern::train
