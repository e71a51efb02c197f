// The encoding of a slot's word.
#pragma once

#include <cstdint>

namespace quern::replay {

// clang-format off
//   0                                   empty
//   (id + 1) << 1                       row `id`, complete
//   (id + 1) << 1 | 1 | writer << 48    row `id`, being written by the process `writer`
// clang-format on
//
// An id is used only once, so a word never has the same value for two rows: a compare-and-swap that finds the expected
// word finds the expected row. Ids end at 2^47, after four years of a million rows per second.

inline constexpr int kWriterShift = 48;
inline constexpr uint64_t kEndOfIds = (uint64_t{1} << (kWriterShift - 1)) - 1;  // a larger id would not fit in the word

constexpr uint64_t complete_word(uint64_t id) { return (id + 1) << 1; }
constexpr uint64_t busy_word(uint64_t id, uint16_t writer) {
  return complete_word(id) | 1 | static_cast<uint64_t>(writer) << kWriterShift;
}
constexpr bool is_busy(uint64_t word) { return (word & 1) != 0; }
constexpr uint16_t writer_of(uint64_t word) { return static_cast<uint16_t>(word >> kWriterShift); }

// The id of the row in a slot, complete or not, plus one; 0 for none.
constexpr uint64_t order_of(uint64_t word) { return (word & ((uint64_t{1} << kWriterShift) - 1)) >> 1; }

}  // namespace quern::replay
