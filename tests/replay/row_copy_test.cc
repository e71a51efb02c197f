#include "replay/row_copy.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

namespace quern::replay {
namespace {

std::vector<std::byte> noise(size_t bytes, unsigned seed) {
  std::mt19937 generator(seed);
  std::vector<std::byte> result(bytes);
  for (std::byte& byte : result) byte = static_cast<std::byte>(generator());
  return result;
}

// Every size around the words, lines and pairs of lines, at every alignment of either side: the bytes arrive, and those
// before and after stay what they were.
void copies_exactly(size_t bytes, size_t row_offset, size_t other_offset, Through way) {
  const std::vector<std::byte> from = noise(bytes + 128, 1);
  const std::vector<std::byte> before = noise(bytes + 256, 2);
  alignas(64) static std::byte rows[70000];
  std::copy(before.begin(), before.end(), rows);
  copy_to_row(rows + 64 + row_offset, from.data() + other_offset, bytes, way);
  for (size_t i = 0; i < before.size(); ++i) {
    const bool inside = i >= 64 + row_offset && i < 64 + row_offset + bytes;
    ASSERT_EQ(rows[i], inside ? from[i - 64 - row_offset + other_offset] : before[i])
        << bytes << " bytes, row at " << row_offset << ", other at " << other_offset << ": byte " << i;
  }
  std::vector<std::byte> back = before;
  copy_from_row(back.data() + 64 + other_offset, rows + 64 + row_offset, bytes);
  for (size_t i = 0; i < back.size(); ++i) {
    const bool inside = i >= 64 + other_offset && i < 64 + other_offset + bytes;
    ASSERT_EQ(back[i], inside ? from[i - 64] : before[i]) << bytes << " bytes back: byte " << i;
  }
}

TEST(RowCopy, CopiesExactlyTheRow) {
  for (const Through way : {Through::kCache, Through::kMemory}) {
    for (const size_t bytes : {0, 1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 63, 64, 65, 127, 128, 129, 200, 1000, 4097}) {
      for (const size_t row_offset : {0, 1, 4, 7, 8, 13, 16, 33, 60, 63}) {
        for (const size_t other_offset : {0, 1, 8, 31}) copies_exactly(bytes, row_offset, other_offset, way);
      }
    }
    copies_exactly(49924, 3, 5, way);
  }
}

TEST(RowCopy, OnlyLongRowsOfLargeRingsBypassTheCaches) {
  EXPECT_EQ(best_way(31232, uint64_t{5} << 30), Through::kMemory);
  EXPECT_EQ(best_way(31232, 1 << 20), Through::kCache);
  EXPECT_EQ(best_way(4, uint64_t{5} << 30), Through::kCache);
}

}  // namespace
}  // namespace quern::replay
