#include "replay/read_rows.h"

#include <cstring>

#include "replay/row_copy.h"

namespace quern::replay {

size_t read_rows(const ReplayBuffer& buffer, std::span<const uint64_t> ids, std::span<std::byte* const> columns,
                 std::span<uint8_t> mask) {
  size_t found = 0;
  for (size_t i = 0; i < ids.size(); ++i) {
    const bool there = buffer.ring().read(ids[i], [&](uint64_t slot) {
      for (size_t c = 0; c < columns.size(); ++c) {
        if (columns[c] == nullptr) continue;
        if (i + 1 < ids.size()) {
          prefetch_row(buffer.stored(c, ids[i + 1] % buffer.capacity()), buffer.stored_bytes(c));
        }
        buffer.load(c, slot, columns[c] + i * buffer.value_bytes(c));
      }
    });
    mask[i] = there ? 1 : 0;
    found += there ? 1 : 0;
    for (size_t c = 0; c < columns.size() && !there; ++c) {
      if (columns[c] != nullptr) std::memset(columns[c] + i * buffer.value_bytes(c), 0, buffer.value_bytes(c));
    }
  }
  buffer.expect_intact();
  return found;
}

}  // namespace quern::replay
