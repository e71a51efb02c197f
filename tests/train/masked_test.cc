// Targets that do not count: the loss is the mean over those that do, however the step is cut.
#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "core/error.h"
#include "kernels/cross_entropy.h"
#include "train/sequential.h"

namespace quern::train {
namespace {

constexpr uint32_t kVocabulary = 61;

// The batches of another source, of which some targets do not count, by a function of step, sequence and position.
class MaskedBatches : public data::BatchSource {
 public:
  MaskedBatches(const data::TrainingBatches& source, const RunConfig& config)
      : source_(source), context_(config.model.context), sequences_(config.sequences_per_step()) {}

  std::vector<ColumnSpec> columns() const override { return source_.columns(); }
  std::unique_ptr<data::BatchReader> reader(const data::StreamPosition& position) const override {
    return std::make_unique<Reader>(*this, position);
  }
  // Sequences differ a lot in how many of their targets count, and one in five has none.
  bool counts(uint64_t step, uint64_t sequence, uint64_t t) const {
    return sequence % 5 != 2 && (step + t) % (sequence % 5 + 2) == 0;
  }
  uint64_t counted(uint64_t step) const {
    uint64_t count = 0;
    for (uint64_t s = 0; s < sequences_; ++s) {
      for (uint64_t t = 0; t < context_; ++t) count += counts(step, s, t) ? 1 : 0;
    }
    return count;
  }

 private:
  class Reader final : public data::BatchReader {
   public:
    Reader(const MaskedBatches& masks, const data::StreamPosition& position)
        : masks_(masks), source_(masks.source_.reader(position)) {}
    void read(data::Batch& batch) override {
      source_->read(batch);
      const std::span<int32_t> targets = batch.columns.ints(kTargetsColumn);
      for (uint64_t i = 0; i < batch.sequences * masks_.context_; ++i) {
        if (!masks_.counts(batch.step, batch.first + i / masks_.context_, i % masks_.context_))
          targets[i] = kernels::kIgnoreTarget;
      }
      batch.counted_targets = masks_.counted(batch.step);
    }

   private:
    const MaskedBatches& masks_;
    std::unique_ptr<data::BatchReader> source_;
  };

  const data::TrainingBatches& source_;
  uint64_t context_, sequences_;
};

RunConfig config_with(uint64_t batch, uint64_t accumulation, uint64_t threads) {
  RunConfig config;
  config.model = {.layers = 2, .heads = 2, .width = 32, .context = 32, .vocabulary = kVocabulary, .dropout = 0.1};
  config.train.batch = batch;
  config.train.accumulation = accumulation;
  config.train.threads = threads;
  return config;
}

test::Trained train(const RunConfig& config) {
  const test::RandomTokens tokens(3000, kVocabulary);
  const data::TrainingBatches source = test::batches_of(config, tokens);
  const MaskedBatches batches(source, config);
  test::Engine engine(config, batches, kVocabulary);
  engine.steps(4);
  return engine.result();
}

TEST(Masked, RoundsAndThreadsGiveTheBitsOfOneRound) {
  const test::Trained expected = train(config_with(16, 1, 1));
  EXPECT_TRUE(train(config_with(4, 4, 1)) == expected);
  EXPECT_TRUE(train(config_with(1, 16, 3)) == expected);
  EXPECT_TRUE(train(config_with(16, 1, 4)) == expected);
}

// A new model gives every token about the same probability, so the mean over any targets is about log V.
TEST(Masked, LossIsTheMeanOverCountedTargets) {
  EXPECT_NEAR(train(config_with(16, 1, 2)).losses.front(), std::log(kVocabulary), 0.05);
}

TEST(Columns, AColumnThatTheDataLacksIsNamed) {
  class NoTargets : public data::BatchSource {
   public:
    std::vector<ColumnSpec> columns() const override { return {{kTokensColumn, ColumnType::kInt32, 32}}; }
    std::unique_ptr<data::BatchReader> reader(const data::StreamPosition&) const override { return nullptr; }
  };
  const NoTargets batches;
  try {
    const test::Engine engine(config_with(4, 1, 1), batches, kVocabulary);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(std::string(error.what()),
              "[train] the model reads column targets with 32 values per sequence; the data has tokens (32 per "
              "sequence)");
  }
}

}  // namespace
}  // namespace quern::train
