#include "parallel/step_cut.h"

#include <gtest/gtest.h>

#include <tuple>

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
    for (const size_t T : {1, 7, 64, 200, 1000}) {
      for (const size_t threads : {1, 2, 3, 5, 8, 64}) {
        const StepCut cut = cut_step(sequences, T, threads);
        ASSERT_GE(cut.micro_batch_size * cut.micro_batches, sequences);
        ASSERT_LT(cut.micro_batch_size * (cut.micro_batches - 1), sequences);
        ASSERT_GE(cut.teams, 1u);
        ASSERT_LE(cut.teams, std::min(threads, cut.micro_batches));
      }
    }
  }
}

}  // namespace
}  // namespace quern::train
