#include "parallel/step_cut.h"

#include <gtest/gtest.h>

#include <tuple>
#include <vector>

namespace quern::train {
namespace {

std::tuple<size_t, size_t, size_t> cut(size_t sequences, size_t T, size_t threads) {
  const StepCut cut = cut_step(sequences, T, threads);
  return {cut.micro_batch_size, cut.micro_batches, cut.teams};
}

TEST(StepCut, MakesMicroBatchesOf256TokensWhereThreadsShareThemEvenly) {
  EXPECT_EQ(cut(16, 128, 1), std::tuple(2, 8, 1));
  EXPECT_EQ(cut(16, 128, 2), std::tuple(2, 8, 2));
  EXPECT_EQ(cut(8, 256, 4), std::tuple(1, 8, 4));
}

TEST(StepCut, MakesSmallerMicroBatchesForIdleThreads) {
  EXPECT_EQ(cut(12, 64, 1), std::tuple(4, 3, 1));
  EXPECT_EQ(cut(12, 64, 2), std::tuple(3, 4, 2));
  EXPECT_EQ(cut(12, 64, 4), std::tuple(3, 4, 4));
}

TEST(StepCut, LeavesFewTokensToATeam) {
  EXPECT_EQ(cut(4, 64, 2), std::tuple(4, 1, 1));
  EXPECT_EQ(cut(1, 1024, 8), std::tuple(1, 1, 1));
  EXPECT_EQ(cut(1, 8, 64), std::tuple(1, 1, 1));
}

TEST(StepCut, CoversEverySequenceOnce) {
  for (size_t sequences = 1; sequences < 70; ++sequences) {
    for (const size_t lanes : {1, 2, 3, 8, 61}) {
      if (lanes > sequences) continue;
      for (const size_t T : {1, 7, 64, 200, 1000}) {
        for (const size_t threads : {1, 2, 3, 5, 8, 64}) {
          const StepCut cut = cut_step(sequences, T, threads, {.lanes = lanes});
          const std::vector<StepPart> parts = cut.parts();
          ASSERT_EQ(parts.size(), cut.micro_batches);
          size_t next = 0;
          for (size_t i = 0; i < parts.size(); ++i) {
            const auto& [part, lane, first, last] = parts[i];
            ASSERT_EQ(part.begin, next);
            ASSERT_GE(part.size(), 1u);
            ASSERT_LE(part.size(), cut.micro_batch_size);
            ASSERT_EQ(first, part.begin == cut.lane(lane).begin);
            ASSERT_EQ(last, part.end == cut.lane(lane).end);
            ASSERT_LE(part.end, cut.lane(lane).end);
            for (size_t s = part.begin; s < part.end; ++s) ASSERT_EQ(cut.part_of(s), i);
            next = part.end;
          }
          ASSERT_EQ(next, sequences);
          ASSERT_GE(cut.teams, 1u);
          ASSERT_LE(cut.teams, std::min(threads, cut.micro_batches));
        }
      }
    }
  }
}

}  // namespace
}  // namespace quern::train
