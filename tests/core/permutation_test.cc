// A pseudo-random order of numbers that takes no memory.
#include "core/permutation.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <set>

namespace quern {
namespace {

RandomStream order(uint64_t seed, uint32_t step) { return {.seed = seed, .purpose = Purpose::kShuffle, .step = step}; }

TEST(Permutation, IsABijection) {
  for (uint64_t size = 1; size < 300; ++size) {
    const Permutation permutation(size, order(5, 0));
    std::set<uint64_t> images;
    for (uint64_t i = 0; i < size; ++i) images.insert(permutation(i));
    EXPECT_EQ(images.size(), size);
    EXPECT_EQ(*images.rbegin(), size - 1);
  }
}

TEST(Permutation, CoversALargeRange) {
  for (const uint64_t size : {(uint64_t{1} << 32) + 1, uint64_t{1} << 50, UINT64_MAX}) {
    const Permutation permutation(size, order(5, 1));
    double sum = 0;
    for (uint64_t i = 0; i < 10000; ++i) sum += static_cast<double>(permutation(i)) / static_cast<double>(size);
    EXPECT_NEAR(sum / 10000, 0.5, 5 * 0.2887 / 100);
  }
}

// In a random order of 1,000 an element follows its predecessor about once.
TEST(Permutation, HasNoRunsAndDependsOnTheStep) {
  int runs = 0;
  int same = 0;
  for (uint32_t step = 0; step < 100; ++step) {
    const Permutation permutation(1000, order(7, step));
    const Permutation next(1000, order(7, step + 1));
    for (uint64_t i = 0; i + 1 < 1000; ++i) runs += permutation(i + 1) == permutation(i) + 1;
    for (uint64_t i = 0; i < 1000; ++i) same += permutation(i) == next(i);
  }
  EXPECT_NEAR(runs, 100, 50);
  EXPECT_NEAR(same, 100, 50);
}

}  // namespace
}  // namespace quern
