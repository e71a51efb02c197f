// The board network in the trainer: the promises of the language models hold for it, and it learns.
#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "config/recompute.h"
#include "nn/models/board.h"
#include "train/sequential.h"
#include "train/trainer.h"

namespace quern::train {
namespace {

constexpr size_t kSquares = 9;

nn::BoardConfig board_config(kernels::DType storage = kernels::DType::kF32) {
  return {.squares = kSquares, .planes = 2, .actions = 9, .width = 32, .layers = 3, .heads = 2, .storage = storage};
}

// Positions with random stones. The move to learn is the first empty square, and the outcome says who has more stones:
// both can be seen only by looking at all squares.
class Stones final : public data::BatchSource {
 public:
  std::vector<ColumnSpec> columns() const override { return nn::BoardModel::declare(board_config()).columns; }
  std::unique_ptr<data::BatchReader> reader(const data::StreamPosition&) const override {
    return std::make_unique<Reader>();
  }

 private:
  struct Reader final : data::BatchReader {
    void read(data::Batch& batch) override {
      for (uint32_t s = 0; s < batch.sequences; ++s) {
        write(batch.step * 1000 + batch.first + s, batch.columns.floats(kPlanesColumn).data() + s * 2 * kSquares,
              batch.columns.floats(kPolicyColumn).data() + s * kSquares,
              batch.columns.floats(kOutcomeColumn).data() + s * 3);
      }
    }
    static void write(uint32_t seed, float* planes, float* policy, float* outcome) {
      std::mt19937 random(seed);
      std::fill_n(planes, 2 * kSquares, 0.0f);
      int balance = 0, empty = 0;
      for (size_t q = 0; q < kSquares; ++q) {
        const size_t stone = q + 1 == kSquares && empty == 0 ? 2 : random() % 3;
        if (stone < 2) planes[stone * kSquares + q] = 1.0f;
        if (stone < 2) balance += stone == 0 ? 1 : -1;
        policy[q] = stone < 2 ? -1.0f : empty++ == 0 ? 1.0f : 0.0f;
      }
      for (int i = 0; i < 3; ++i) outcome[i] = i == (balance > 0 ? 0 : balance == 0 ? 1 : 2) ? 1.0f : 0.0f;
    }
  };
};

RunConfig run_config(uint64_t threads, const std::string& recompute = "none") {
  RunConfig config;
  config.model.context = kSquares;
  config.train.batch = 96;  // four micro-batches
  config.train.threads = threads;
  config.train.steps = 400;
  config.train.recompute = *parse_recompute(recompute);
  config.optimizer.warmup = 2;
  config.optimizer.rate = 0.003;
  return config;
}

struct Learning {
  explicit Learning(const RunConfig& config, kernels::DType storage = kernels::DType::kF32)
      : plan(make_plan(config, nn::BoardModel::declare(board_config(storage)))),
        model(board_config(storage), plan.packed),
        trainer(config, plan, model, source, state) {
    model.initialise(config.train.seed);
  }
  StepReport steps(int n) {
    StepReport last;
    for (int i = 0; i < n; ++i) {
      last = trainer.step();
      losses.push_back(last.loss);
    }
    return last;
  }
  std::vector<float> weights() { return test::copy_of(model.weights().values()); }

  Plan plan;
  nn::BoardModel model;
  Stones source;
  RunState state;
  Trainer trainer;
  std::vector<double> losses;
};

TEST(BoardTraining, RecomputeAndThreadsDoNotChangeTheWeights) {
  std::vector<std::vector<float>> by_storage;
  for (const kernels::DType storage : {kernels::DType::kF32, kernels::DType::kBF16, kernels::DType::kF16}) {
    Learning one(run_config(1), storage);
    one.steps(4);
    for (const char* recompute : {"none", "every-layer", "sqrt"}) {
      for (const uint64_t threads : {2, 7}) {
        Learning other(run_config(threads, recompute), storage);
        other.steps(4);
        EXPECT_EQ(other.weights(), one.weights()) << recompute << ", " << threads << " threads";
        EXPECT_EQ(other.losses, one.losses);
      }
    }
    by_storage.push_back(one.weights());
  }
  EXPECT_NE(by_storage[0], by_storage[1]);
  EXPECT_NE(by_storage[1], by_storage[2]);
}

TEST(BoardTraining, AccumulationRoundsEqualOneRound) {
  RunConfig rounds = run_config(2);
  rounds.train.batch = 24;
  rounds.train.accumulation = 4;
  Learning one(run_config(2)), four(rounds);
  one.steps(4);
  four.steps(4);
  EXPECT_EQ(four.weights(), one.weights());
}

TEST(BoardTraining, ResumesBitIdentically) {
  Learning uninterrupted(run_config(2)), first(run_config(2)), second(run_config(1));
  uninterrupted.steps(6);
  first.steps(3);
  std::copy_n(first.model.weights().values().begin(), first.weights().size(), second.model.weights().values().begin());
  test::restore_states(test::copy_of_states(first.trainer.optimizer()), second.trainer.optimizer());
  second.state = first.state;
  second.trainer.resume();
  second.steps(3);
  EXPECT_EQ(second.weights(), uninterrupted.weights());
}

// A step's loss is the mean over positions, not over squares: at first that of guessing among the legal moves and the
// three outcomes.
TEST(BoardTraining, LearnsAndReportsBothLosses) {
  Learning run(run_config(2));
  const StepReport first = run.steps(1);
  EXPECT_NEAR(first.loss_parts[1], std::log(3.0), 0.05);
  EXPECT_NEAR(first.loss_parts[0], 1.0, 0.3);  // about three empty squares
  EXPECT_DOUBLE_EQ(first.loss, first.loss_parts[0] + first.loss_parts[1]);
  const StepReport last = run.steps(test::kSanitized ? 20 : 250);
  if (test::kSanitized) return;
  EXPECT_LT(last.loss_parts[0], 0.3 * first.loss_parts[0]);
  EXPECT_LT(last.loss_parts[1], 0.5 * first.loss_parts[1]);
}

}  // namespace
}  // namespace quern::train
