#include "generate/repeat_penalty.h"

#include <gtest/gtest.h>

#include <limits>

namespace quern {
namespace {

using Floats = std::vector<float>;

Floats after(RepeatPenalty& penalty, const Floats& logits) {
  const std::span<const float> found = penalty.apply(logits);
  return {found.begin(), found.end()};
}

TEST(RepeatPenalty, DividesPositiveAndMultipliesNegativeLogitsOnce) {
  RepeatPenalty penalty(2.0f, 0, 5);
  penalty.see(std::vector<int32_t>{0, 1, 2, 0, 0});
  EXPECT_EQ(after(penalty, {3.0f, -3.0f, 0.0f, 3.0f, -3.0f}), (Floats{1.5f, -6.0f, 0.0f, 3.0f, -3.0f}));
}

TEST(RepeatPenalty, ForgetsWhatLeavesTheWindow) {
  RepeatPenalty penalty(2.0f, 3, 4);
  penalty.see(std::vector<int32_t>{0, 1, 1, 2});
  EXPECT_EQ(after(penalty, {4, 4, 4, 4}), (Floats{4, 2, 2, 4}));
  penalty.see(2);
  EXPECT_EQ(after(penalty, {4, 4, 4, 4}), (Floats{4, 2, 2, 4})) << "one of two is left";
  penalty.see(3);
  EXPECT_EQ(after(penalty, {4, 4, 4, 4}), (Floats{4, 4, 2, 2}));
}

// A prompt can have ids of rows that no text contains.
TEST(RepeatPenalty, TokensOutsideTheVocabularyTakeAPlaceInTheWindow) {
  RepeatPenalty penalty(2.0f, 2, 3);
  penalty.see(std::vector<int32_t>{0, 1, 7});
  EXPECT_EQ(after(penalty, {4, 4, 4, 4, 4}), (Floats{4, 2, 4}));
}

TEST(RepeatPenalty, OneIsOff) {
  RepeatPenalty penalty(1.0f, 64, 3);
  penalty.see(std::vector<int32_t>{0, 1});
  const Floats logits = {1, 2, 3};
  EXPECT_FALSE(penalty.active());
  EXPECT_EQ(penalty.apply(logits).data(), logits.data());
}

// Infinite results would be reported as unusable weights.
TEST(RepeatPenalty, FiniteLogitsStayFinite) {
  constexpr float kMax = std::numeric_limits<float>::max(), kInfinity = std::numeric_limits<float>::infinity();
  RepeatPenalty strong(1e30f, 0, 3), weak(1e-30f, 0, 3);
  for (RepeatPenalty* penalty : {&strong, &weak}) penalty->see(std::vector<int32_t>{0, 1, 2});
  EXPECT_EQ(after(strong, {1.0f, -1e30f, -kInfinity}), (Floats{1e-30f, -kMax, -kInfinity}));
  EXPECT_EQ(after(weak, {1e30f, -1e30f, -kInfinity}), (Floats{kMax, -1.0f, -kInfinity}));
}

}  // namespace
}  // namespace quern
