#include "data/mixed_batches.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>
#include <vector>

#include "data/token_buffer.h"
#include "data/token_sequences.h"

namespace quern::data {
namespace {

constexpr uint32_t kContext = 4, kPerStep = 8;

// Source i has tokens 1000 i ... 1000 i + 999 by position, so that a token tells where it is from.
class MixedBatchesTest : public ::testing::Test {
 protected:
  MixedBatchesTest() {
    for (int32_t i = 0; i < 3000; ++i) tokens_.append({&i, 1});
  }
  MixedBatches source(Order order, const std::vector<double>& weights) const {
    std::vector<MixedBatches::Source> sources;
    for (size_t i = 0; i < weights.size(); ++i) {
      const BatchOptions options{.seed = 1,
                                 .context = kContext,
                                 .sequences_per_step = kPerStep,
                                 .order = order,
                                 .source = static_cast<uint32_t>(i)};
      const TokenRange range{&tokens_, 1000 * i, 1000 * (i + 1)};
      sources.push_back({std::make_unique<TokenSequences>(range, options), weights[i]});
    }
    return {1, std::move(sources)};
  }
  static Batch batch(uint32_t step, uint32_t first, uint32_t sequences) {
    Batch batch;
    batch.step = step;
    batch.first = first;
    batch.sequences = sequences;
    batch.columns = Columns(
        {{kTokensColumn, ColumnType::kInt32, kContext}, {kTargetsColumn, ColumnType::kInt32, kContext}}, sequences);
    return batch;
  }
  // The first tokens of the sequences of `steps` steps, each of which is within one source.
  static std::vector<int32_t> starts(BatchReader& reader, uint32_t first_step, uint32_t steps,
                                     StreamPosition* after = nullptr) {
    std::vector<int32_t> found;
    for (uint32_t step = first_step; step < first_step + steps; ++step) {
      Batch one = batch(step, 0, kPerStep);
      reader.read(one);
      for (uint32_t i = 0; i < kPerStep; ++i) {
        const int32_t* tokens = one.columns.ints(kTokensColumn).data() + i * kContext;
        const int32_t* targets = one.columns.ints(kTargetsColumn).data() + i * kContext;
        for (uint32_t t = 0; t < kContext; ++t) EXPECT_EQ(targets[t], tokens[0] + static_cast<int32_t>(t) + 1);
        EXPECT_EQ(tokens[0] / 1000, targets[kContext - 1] / 1000);
        found.push_back(tokens[0]);
      }
      if (after != nullptr) *after = one.after;
    }
    return found;
  }

  TokenBuffer tokens_{3000};
};

TEST(DrawSource, FollowsTheWeights) {
  const std::vector<double> weights = {3, 1, 0.5};
  std::vector<int> drawn(3);
  constexpr int kDraws = 90'000;
  for (uint32_t i = 0; i < kDraws; ++i) ++drawn[draw_source(7, i / 30, i % 30, weights)];
  for (size_t i = 0; i < 3; ++i) {
    const double expected = kDraws * weights[i] / 4.5;
    EXPECT_NEAR(drawn[i], expected, 4 * std::sqrt(expected)) << i;
  }
  EXPECT_EQ(draw_source(7, 1, 2, weights), draw_source(7, 1, 2, {30, 10, 5}));
}

TEST_F(MixedBatchesTest, EverySequenceIsFromOneSource) {
  for (const Order order : {Order::kRandom, Order::kEpoch}) {
    const MixedBatches batches = source(order, {1, 2, 1});
    std::vector<int> drawn(3);
    for (const int32_t start : starts(*batches.reader({}), 0, 500)) ++drawn[static_cast<size_t>(start / 1000)];
    EXPECT_NEAR(drawn[1], 2000, 150);
    EXPECT_NEAR(drawn[0], 1000, 120);
  }
}

TEST_F(MixedBatchesTest, EachSourceHasEpochsOfItsOwn) {
  const MixedBatches batches = source(Order::kEpoch, {1, 5, 1});
  std::vector<std::vector<int32_t>> drawn(3);
  for (const int32_t start : starts(*batches.reader({}), 0, 400))
    drawn[static_cast<size_t>(start / 1000)].push_back(start);
  constexpr size_t kBlocks = 249;  // of 1,000 tokens
  for (const std::vector<int32_t>& of_source : drawn) {
    ASSERT_GT(of_source.size(), kBlocks);
    for (size_t begin = 0; begin + kBlocks <= of_source.size(); begin += kBlocks) {
      const auto from = of_source.begin() + static_cast<ptrdiff_t>(begin);
      EXPECT_EQ(std::set<int32_t>(from, from + kBlocks).size(), kBlocks);
    }
  }
}

TEST_F(MixedBatchesTest, ResumesAndDoesNotDependOnMicroBatches) {
  for (const Order order : {Order::kRandom, Order::kEpoch}) {
    const MixedBatches batches = source(order, {1, 2, 1});
    StreamPosition position;
    std::vector<int32_t> expected = starts(*batches.reader({}), 0, 60), found;
    for (uint32_t step = 0; step < 60; step += 7) {
      const uint32_t steps = std::min(7u, 60 - step);
      const std::vector<int32_t> some = starts(*batches.reader(position), step, steps, &position);
      found.insert(found.end(), some.begin(), some.end());
    }
    EXPECT_EQ(found, expected);
    std::vector<int32_t> by_threes;
    const auto reader = batches.reader({});
    for (uint32_t step = 0; step < 60; ++step) {
      for (uint32_t first = 0; first < kPerStep; first += 3) {
        Batch some = batch(step, first, std::min(3u, kPerStep - first));
        reader->read(some);
        for (uint32_t i = 0; i < some.sequences; ++i)
          by_threes.push_back(some.columns.ints(kTokensColumn)[i * kContext]);
      }
    }
    EXPECT_EQ(by_threes, expected);
  }
}

// 3 : 1 until one of them has no more windows.
TEST_F(MixedBatchesTest, ValidationAlternatesInProportionToTheWeights) {
  const std::vector<HeldOut> parts = {{{&tokens_, 0, 1000}, 3}, {{&tokens_, 1000, 2000}, 1}};
  const ValidationBatches all(parts, kContext), some(parts, kContext, 8);
  EXPECT_EQ(some.windows(), 8u);
  EXPECT_NEAR(static_cast<double>(all.windows()), 249.0 * 4 / 3, 3);
  std::vector<int32_t> inputs(kContext), targets(kContext);
  std::vector<int32_t> next = {0, 1000};
  for (uint64_t w = 0; w < all.windows(); ++w) {
    all.fill(w, 1, inputs.data(), targets.data());
    int32_t& expected = next[static_cast<size_t>(inputs[0] / 1000)];
    EXPECT_EQ(inputs[0], expected);
    EXPECT_EQ(targets[kContext - 1], expected + 4);
    expected += 4;
  }
  EXPECT_EQ(next[0], 249 * 4);
  EXPECT_NEAR(next[1] - 1000, 83 * 4, 8);
}

}  // namespace
}  // namespace quern::data
