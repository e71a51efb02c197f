#include "train/plan.h"
#include "nn/models/language_model.h"

#include <gtest/gtest.h>

#include <string>

#include "config/recompute.h"
#include "core/error.h"
#include "nn/models/transformer.h"
#include "support/message.h"

namespace quern::train {
namespace {

RunConfig deep(const char* recompute = "auto", uint64_t memory = 0, Precision precision = Precision::kFp32) {
  RunConfig config;
  config.model = {.layers = 24, .heads = 6, .width = 384, .context = 512, .vocabulary = 96, .dropout = 0.1};
  config.train.batch = 8;
  config.train.threads = 2;
  config.train.recompute = *parse_recompute(recompute);
  config.train.memory = memory;
  config.train.precision = precision;
  return config;
}

TEST(Recompute, NamesRoundTrip) {
  for (const char* text : {"auto", "none", "every-layer", "sqrt", "interval=1", "interval=17"}) {
    ASSERT_TRUE(parse_recompute(text)) << text;
    EXPECT_EQ(to_text(*parse_recompute(text)), text);
  }
  for (const char* text : {"", "Auto", "every", "interval", "interval=", "interval=0", "interval=-1", "interval=2x",
                           "interval=99999999999999999999", "sqrt "}) {
    EXPECT_FALSE(parse_recompute(text)) << text;
  }
}

TEST(Recompute, LayersAtOnce) {
  const auto of = [](const char* text, size_t layers) { return layers_at_once(*parse_recompute(text), layers); };
  EXPECT_EQ(of("none", 24), 24u);
  EXPECT_EQ(of("every-layer", 24), 1u);
  EXPECT_EQ(of("sqrt", 24), 5u);
  EXPECT_EQ(of("sqrt", 25), 5u);
  EXPECT_EQ(of("sqrt", 1), 1u);
  EXPECT_EQ(of("interval=7", 24), 7u);
}

TEST(Plan, WithoutALimitNothingIsRecomputed) {
  const Plan plan = make_plan(deep(), 96);
  EXPECT_EQ(plan.interval, 24u);
  EXPECT_EQ(plan.cut.teams, 2u);
  EXPECT_TRUE(plan.packed);
  EXPECT_EQ(plan.time, 1.0);
}

// Copies of the frozen matrices would take more memory than all else, to save 2 % of the time.
TEST(Plan, WithAdaptersProductsPackTheFrozenWeights) {
  RunConfig config = deep();
  config.lora.rank = 4;
  const Plan plan = make_plan(config, 96);
  EXPECT_FALSE(plan.packed);
  EXPECT_EQ(plan.memory.packed, 0u);
  EXPECT_EQ(plan.time, 1.0);
  config.train.precision = Precision::kBf16;
  EXPECT_TRUE(make_plan(config, 96).packed);
}

TEST(Plan, MatchesAllocations) {
  for (const char* recompute : {"none", "sqrt", "every-layer"}) {
    const RunConfig config = deep(recompute);
    const Plan plan = make_plan(config, 96);
    const nn::Workspace work(nn::declare(model_config(config, 96)).activations, plan.workspace(0));
    EXPECT_EQ(work.planned_bytes(), plan.memory.worker.total());
  }
}

// The tighter the limit, the slower the plan, and always within it.
TEST(Plan, StaysWithinTheLimit) {
  const size_t max = make_plan(deep(), 96).memory.total();
  double time = 0;
  size_t intervals_seen = 0, last_interval = 0;
  for (size_t limit = max; limit > 0; limit -= max / 50) {
    Plan plan;
    try {
      plan = make_plan(deep("auto", limit), 96);
    } catch (const Error&) {
      break;
    }
    EXPECT_LE(plan.memory.total(), limit);
    EXPECT_GE(plan.time, time);
    time = plan.time;
    intervals_seen += plan.interval != last_interval;
    last_interval = plan.interval;
  }
  EXPECT_GT(intervals_seen, 5u);
  EXPECT_GT(time, 1.2);
}

TEST(Plan, ErrorNamesTheSmallestFeasibleLimit) {
  const std::string message = test::message_of([] { make_plan(deep("auto", uint64_t{50} << 20), 96); });
  const std::string expected = "[plan] train.memory: expected at least ";
  ASSERT_EQ(message.substr(0, expected.size()), expected) << message;
  const uint64_t min = std::stoull(message.substr(expected.size()));
  EXPECT_NO_THROW(make_plan(deep("auto", min << 20), 96));
  EXPECT_THROW(make_plan(deep("auto", (min - 1) << 20), 96), Error);
}

TEST(Plan, KeepsTheGivenStrategy) {
  const size_t free = make_plan(deep("sqrt"), 96).memory.total();
  EXPECT_EQ(make_plan(deep("sqrt", free), 96).interval, 5u);
  EXPECT_EQ(make_plan(deep("sqrt", free - 1), 96).interval, 5u);
  EXPECT_THROW(make_plan(deep("none", free / 2), 96), Error);
}

TEST(Plan, SqrtCutsActivationsOfADeepModelByThreeQuarters) {
  const double none = static_cast<double>(make_plan(deep("none"), 96).memory.worker.activations);
  const double sqrt = static_cast<double>(make_plan(deep("sqrt"), 96).memory.worker.activations);
  EXPECT_LT(sqrt, 0.25 * none);
}

TEST(Plan, CountsMemoryInUse) {
  const size_t total = make_plan(deep(), 96).memory.total();
  EXPECT_EQ(make_plan(deep(), 96, 1000).memory.total(), total + 1000);
  EXPECT_GT(make_plan(deep("auto", total), 96, 50 << 20).time, 1.0);
}

}  // namespace
}  // namespace quern::train
