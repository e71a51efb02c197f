// Reads rows by their ids.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "replay/buffer.h"

namespace quern::replay {

// Copies the rows with these ids, in their order, to the columns that are not null; mask[i] becomes 1 if row i was in
// the buffer, otherwise 0, and its values zeros. Returns how many were. No lock, no allocation. Error when the memory
// is lost.
size_t read_rows(const ReplayBuffer& buffer, std::span<const uint64_t> ids, std::span<std::byte* const> columns,
                 std::span<uint8_t> mask);

}  // namespace quern::replay
