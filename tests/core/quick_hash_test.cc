#include "core/quick_hash.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <vector>

namespace quern {
namespace {

TEST(QuickHash, EveryBitAndTheLengthMatter) {
  for (const size_t size : {0, 1, 7, 31, 32, 33, 64, 100}) {
    std::vector<std::byte> bytes(size, std::byte{7});
    std::set<uint64_t> hashes = {quick_hash(bytes)};
    EXPECT_EQ(quick_hash(bytes), *hashes.begin());
    for (size_t bit = 0; bit < 8 * size; ++bit) {
      bytes[bit / 8] ^= std::byte{1} << (bit % 8);
      hashes.insert(quick_hash(bytes));
      bytes[bit / 8] ^= std::byte{1} << (bit % 8);
    }
    bytes.push_back(std::byte{0});
    hashes.insert(quick_hash(bytes));
    EXPECT_EQ(hashes.size(), 8 * size + 2);
  }
}

TEST(QuickHash, OrderMatters) {
  std::vector<std::byte> bytes(64);
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::byte>(i);
  const uint64_t before = quick_hash(bytes);
  std::swap_ranges(bytes.begin(), bytes.begin() + 8, bytes.begin() + 32);
  EXPECT_NE(quick_hash(bytes), before);
}

}  // namespace
}  // namespace quern
