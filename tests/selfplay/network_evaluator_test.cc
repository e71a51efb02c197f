#include "selfplay/network_evaluator.h"

#include <gtest/gtest.h>

#include <vector>

#include "support/support.h"

namespace quern::selfplay {
namespace {

TEST(NetworkEvaluator, GivesTheNetworksResultForAnyNumberOfPositions) {
  const nn::BoardConfig config{.squares = 42, .planes = 2, .actions = 7, .width = 32, .layers = 2};
  nn::BoardModel model(config, nn::Packing::for_inference());
  model.initialise(1);
  NetworkEvaluator evaluator(model);
  constexpr size_t kCount = 20;  // more than it computes at a time
  const std::vector<float> planes = test::normal(kCount * 2 * 42, 1);
  std::vector<float> logits(kCount * 7), outcomes(kCount * 3);
  evaluator.evaluate(kCount, planes.data(), logits.data(), outcomes.data());
  for (size_t i = 0; i < kCount; ++i) {
    std::vector<float> one(7), outcome(3);
    evaluator.evaluate(1, planes.data() + i * 2 * 42, one.data(), outcome.data());
    EXPECT_TRUE(test::same_bits(one, std::span(logits).subspan(i * 7, 7)));
    EXPECT_TRUE(test::same_bits(outcome, std::span(outcomes).subspan(i * 3, 3)));
    EXPECT_NEAR(outcome[0] + outcome[1] + outcome[2], 1.0, 1e-6);
  }
}

}  // namespace
}  // namespace quern::selfplay
