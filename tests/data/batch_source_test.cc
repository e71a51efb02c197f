#include "data/batch_source.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <numeric>
#include <set>
#include <vector>

#include "data/files.h"

namespace quern::data {
namespace {

using test::contains;
using test::error_of;
using Tokens = std::vector<int32_t>;

// Token p is p, and the positions that were read are remembered.
class Counting : public TokenStream {
 public:
  explicit Counting(uint64_t size) : size_(size) {}
  uint64_t size() const override { return size_; }
  void copy(uint64_t position, size_t count, int32_t* out) const override {
    EXPECT_LE(position + count, size_);
    std::iota(out, out + count, static_cast<int32_t>(position));
    for (size_t i = 0; i < count; ++i) ++reads_[position + i];
  }
  const std::map<uint64_t, int>& reads() const { return reads_; }

 private:
  uint64_t size_;
  mutable std::map<uint64_t, int> reads_;
};

struct Batch {
  Tokens inputs, targets;
};

Batch fetch(const TrainingBatches& batches, uint32_t step, uint32_t first, uint32_t count, size_t context) {
  Batch batch{Tokens(count * context), Tokens(count * context)};
  batches.fill(step, first, count, batch.inputs.data(), batch.targets.data());
  return batch;
}

constexpr Order kOrders[] = {Order::kRandom, Order::kEpoch};

TEST(Split, SplitsByPosition) {
  const Counting stream(1115394);
  const Split split = split_by_position(stream, 0.1);
  EXPECT_EQ(split.train.begin, 0u);
  EXPECT_EQ(split.train.end, 1003854u);  // as nanoGPT cuts tiny Shakespeare
  EXPECT_EQ(split.validation.begin, 1003854u);
  EXPECT_EQ(split.validation.end, 1115394u);
  EXPECT_EQ(split_by_position(stream, 0).train.end, 1115394u);
  EXPECT_EQ(split_by_position(stream, 0).validation.size(), 0u);
}

TEST(Split, RejectsBadFractionsAndEmptyText) {
  const Counting stream(100);
  for (const double fraction : {-0.1, 1.0, 2.0, static_cast<double>(NAN)}) {
    EXPECT_TRUE(contains(error_of([&] { split_by_position(stream, fraction); }), "validation fraction"));
  }
  EXPECT_TRUE(contains(error_of([] { split_by_position(Counting(0), 0.1); }), "found 0 tokens"));
}

TEST(TrainingBatches, TargetsAreTheNextTokens) {
  const Counting stream(1000);
  for (const Order order : kOrders) {
    const TrainingBatches batches({&stream, 100, 900},
                                  {.seed = 1, .context = 7, .sequences_per_step = 5, .order = order});
    const Batch batch = fetch(batches, 3, 0, 5, 7);
    for (uint32_t i = 0; i < 5; ++i) {
      for (uint32_t t = 0; t < 7; ++t) {
        EXPECT_EQ(batch.inputs[i * 7 + t], static_cast<int32_t>(batches.position(3, i) + t));
        EXPECT_EQ(batch.targets[i * 7 + t], batch.inputs[i * 7 + t] + 1);
      }
    }
  }
}

TEST(TrainingBatches, FourRoundsOfFourEqualOneOfSixteenInAnyOrder) {
  const Counting stream(5000);
  for (const Order order : kOrders) {
    const TrainingBatches batches({&stream, 0, 5000},
                                  {.seed = 9, .context = 16, .sequences_per_step = 16, .order = order});
    for (const uint32_t step : {0u, 1u, 77u, 4000000000u}) {
      const Batch whole = fetch(batches, step, 0, 16, 16);
      for (const uint32_t round : {3u, 0u, 2u, 1u}) {
        const Batch part = fetch(batches, step, 4 * round, 4, 16);
        EXPECT_TRUE(std::equal(part.inputs.begin(), part.inputs.end(), whole.inputs.begin() + ptrdiff_t{64} * round));
        EXPECT_TRUE(
            std::equal(part.targets.begin(), part.targets.end(), whole.targets.begin() + ptrdiff_t{64} * round));
      }
    }
  }
}

TEST(TrainingBatches, NeverReadTheHeldOutPart) {
  for (const Order order : kOrders) {
    for (const uint64_t size : {23u, 40u, 157u, 1000u}) {
      const Counting stream(size);
      const Split split = split_by_position(stream, 0.3);
      const TrainingBatches train(split.train, {.seed = 4, .context = 8, .sequences_per_step = 16, .order = order});
      for (uint32_t step = 0; step < 300; ++step) fetch(train, step, 0, 16, 8);
      EXPECT_EQ(stream.reads().rbegin()->first, split.train.end - 1) << "every token before it is reached";
      EXPECT_EQ(stream.reads().begin()->first, 0u);
      EXPECT_EQ(stream.reads().size(), split.train.size());
    }
  }
}

TEST(TrainingBatches, RandomPositionsAreUniform) {
  const Counting stream(100 + 16);
  const TrainingBatches batches({&stream, 0, 116}, {.seed = 2, .context = 16, .sequences_per_step = 100});
  std::vector<double> counts(100, 0);
  for (uint32_t step = 0; step < 1000; ++step) {
    for (uint32_t i = 0; i < 100; ++i) counts.at(batches.position(step, i)) += 1;
  }
  double chi2 = 0;  // 99 degrees of freedom: mean 99, deviation 14
  for (const double count : counts) chi2 += (count - 1000) * (count - 1000) / 1000;
  EXPECT_LT(chi2, 99 + 5 * 14);
  EXPECT_GT(chi2, 99 - 5 * 14);
}

TEST(TrainingBatches, DependOnSeedStepAndSequence) {
  const Counting stream(1 << 20);
  std::set<uint64_t> positions;
  for (const uint64_t seed : {uint64_t{1}, uint64_t{2}, uint64_t{1} << 32}) {
    const TrainingBatches batches({&stream, 0, 1 << 20}, {.seed = seed, .context = 8, .sequences_per_step = 4});
    for (uint32_t step = 0; step < 4; ++step) {
      for (uint32_t i = 0; i < 4; ++i) positions.insert(batches.position(step, i));
    }
  }
  EXPECT_EQ(positions.size(), 48u);
}

// A run made elsewhere or before has to read the same text, so these must never change. They were computed by a second
// program, written in Python from the description in the headers.
TEST(TrainingBatches, AreTheSameOnEveryMachine) {
  const Counting stream(1 << 20);
  const TrainingBatches random({&stream, 0, 1 << 20}, {.seed = 42, .context = 64, .sequences_per_step = 8});
  const TrainingBatches epoch({&stream, 0, 1 << 20},
                              {.seed = 42, .context = 64, .sequences_per_step = 8, .order = Order::kEpoch});
  EXPECT_EQ(random.position(0, 0), 443715u);
  EXPECT_EQ(random.position(1000, 7), 451096u);
  EXPECT_EQ(epoch.position(0, 0), 765830u);
  EXPECT_EQ(epoch.position(5000, 7), 422987u);
}

TEST(TrainingBatches, AnEpochSeesEveryBlockOnce) {
  const Counting stream(10 + 1003);
  const TrainingBatches batches({&stream, 10, 1013},
                                {.seed = 3, .context = 10, .sequences_per_step = 7, .order = Order::kEpoch});
  EXPECT_EQ(batches.steps_per_epoch(), 15u);  // 100 blocks
  std::vector<std::vector<uint64_t>> epochs(5);
  for (uint64_t g = 0; g < 500; ++g) {
    epochs[g / 100].push_back(batches.position(static_cast<uint32_t>(g / 7), static_cast<uint32_t>(g % 7)));
  }
  std::set<std::vector<uint64_t>> orders;
  for (const std::vector<uint64_t>& epoch : epochs) {
    std::set<uint64_t> blocks(epoch.begin(), epoch.end());
    EXPECT_EQ(blocks.size(), 100u);
    EXPECT_EQ(*blocks.rbegin() - *blocks.begin(), 990u);
    EXPECT_GE(*blocks.begin(), 10u);
    for (const uint64_t block : blocks) EXPECT_EQ((block - *blocks.begin()) % 10, 0u);
    orders.insert(epoch);
  }
  EXPECT_EQ(orders.size(), 5u);
}

TEST(TrainingBatches, TooShortTextIsNamed) {
  const Counting stream(64);
  const auto make = [&](uint64_t end, uint32_t context, uint32_t sequences) {
    return error_of([&] { TrainingBatches({&stream, 0, end}, {.context = context, .sequences_per_step = sequences}); });
  };
  EXPECT_EQ(make(64, 64, 1),
            "[data] training text: expected at least 65 tokens (a context of 64 and the one after it), found 64");
  EXPECT_EQ(make(64, 63, 1), "");
  EXPECT_TRUE(contains(make(0, 8, 1), "found 0"));
  EXPECT_TRUE(contains(make(64, 0, 1), "context"));
  EXPECT_TRUE(contains(make(64, 8, 0), "sequence"));
  EXPECT_TRUE(contains(make(64, UINT32_MAX, 1), "expected at least 4294967296 tokens"));
}

TEST(ValidationBatches, AreFixedWindowsWithoutOverlap) {
  const Counting stream(1000);
  const Split split = split_by_position(stream, 0.25);
  const ValidationBatches batches(split.validation, 16);
  EXPECT_EQ(batches.windows(), 15u);  // 249 / 16
  Tokens inputs(240), targets(240);
  batches.fill(0, 15, inputs.data(), targets.data());
  for (int32_t i = 0; i < 240; ++i) {
    EXPECT_EQ(inputs[static_cast<size_t>(i)], 750 + i);
    EXPECT_EQ(targets[static_cast<size_t>(i)], 751 + i);
  }
  EXPECT_EQ(stream.reads().begin()->first, split.validation.begin);
  Tokens part(32), part_targets(32);
  batches.fill(4, 2, part.data(), part_targets.data());
  EXPECT_TRUE(std::equal(part.begin(), part.end(), inputs.begin() + 64));
}

TEST(ValidationBatches, MayBeLimitedAndNameWhatIsTooShort) {
  const Counting stream(1000);
  EXPECT_EQ(ValidationBatches({&stream, 0, 1000}, 10, 7).windows(), 7u);
  EXPECT_EQ(ValidationBatches({&stream, 989, 1000}, 10).windows(), 1u);
  EXPECT_TRUE(
      contains(error_of([&] {
                 ValidationBatches({&stream, 990, 1000}, 10);
               }),
               "validation text: expected at least 11 tokens (a context of 10 and the one after it), found 10"));
}

}  // namespace
}  // namespace quern::data
