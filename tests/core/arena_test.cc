#include "core/arena.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <limits>

#include "core/error.h"

namespace quern {
namespace {

struct Layout {
  std::span<float> weights;
  std::span<uint8_t> flags;
  std::span<double> tail;
};

Layout lay_out(Arena& arena) {
  Layout layout;
  layout.weights = arena.take<float>(100);  // 448 bytes
  layout.flags = arena.take<uint8_t>(1);    // 64
  layout.tail = arena.take<double>(8);      // 64
  return layout;
}

TEST(Arena, PlanMatchesUseExactly) {
  Arena arena;
  EXPECT_TRUE(arena.planning());
  EXPECT_TRUE(lay_out(arena).weights.empty());
  EXPECT_EQ(arena.planned_bytes(), 448u + 64u + 64u);
  EXPECT_EQ(arena.used_bytes(), 448u + 64u + 64u);
  arena.allocate();
  EXPECT_FALSE(arena.planning());
  EXPECT_EQ(arena.used_bytes(), 0u);
  for (int step = 0; step < 3; ++step) {
    arena.reset();
    lay_out(arena);
    EXPECT_EQ(arena.used_bytes(), 448u + 64u + 64u);
    EXPECT_EQ(arena.peak_bytes(), arena.planned_bytes());
  }
}

TEST(Arena, SpansAreAlignedDisjointAndWritable) {
  Arena arena;
  lay_out(arena);
  arena.allocate(Fill::kZero);
  const Layout layout = lay_out(arena);
  EXPECT_EQ(layout.weights.size(), 100u);
  EXPECT_EQ(layout.flags.size(), 1u);
  EXPECT_EQ(layout.tail.size(), 8u);
  for (const void* pointer :
       {static_cast<const void*>(layout.weights.data()), static_cast<const void*>(layout.flags.data()),
        static_cast<const void*>(layout.tail.data())}) {
    EXPECT_EQ(reinterpret_cast<uintptr_t>(pointer) % kAlignment, 0u);
  }
  EXPECT_TRUE(std::all_of(layout.weights.begin(), layout.weights.end(), [](float x) { return x == 0.0f; }));
  std::fill(layout.weights.begin(), layout.weights.end(), 1.0f);
  std::fill(layout.tail.begin(), layout.tail.end(), 3.0);
  layout.flags[0] = 2;
  EXPECT_EQ(layout.weights[99], 1.0f);
  EXPECT_EQ(layout.flags[0], 2);
  EXPECT_EQ(layout.tail[0], 3.0);
}

TEST(Arena, ResetReturnsTheSameMemory) {
  Arena arena;
  arena.take<float>(64);
  arena.allocate();
  const float* first = arena.take<float>(64).data();
  arena.reset();
  EXPECT_EQ(arena.used_bytes(), 0u);
  EXPECT_EQ(arena.take<float>(64).data(), first);
}

TEST(Arena, OverrunIsAnErrorAndChangesNothing) {
  Arena arena;
  arena.take<float>(32);
  arena.allocate();
  arena.take<float>(16);
  EXPECT_THROW(arena.take<float>(17), Error);
  EXPECT_EQ(arena.used_bytes(), 64u);
  EXPECT_EQ(arena.take<float>(16).size(), 16u);
  EXPECT_THROW(arena.take<uint8_t>(1), Error);
  EXPECT_EQ(arena.take<float>(0).size(), 0u);
}

TEST(Arena, AnEmptyPlanIsAllowed) {
  Arena arena;
  arena.allocate();
  EXPECT_TRUE(arena.take<float>(0).empty());
  EXPECT_THROW(arena.take<float>(1), Error);
}

TEST(Arena, PlansThatOverflowAreErrors) {
  Arena arena;
  EXPECT_THROW(arena.take<float>(std::numeric_limits<size_t>::max() / 2), Error);
  const size_t half = std::numeric_limits<ptrdiff_t>::max() / 2;
  arena.take<uint8_t>(half);
  arena.take<uint8_t>(half - 1000);
  EXPECT_THROW(arena.take<uint8_t>(half), Error);
  EXPECT_THROW(arena.allocate(), Error);
}

}  // namespace
}  // namespace quern
