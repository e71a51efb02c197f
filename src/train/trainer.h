// Steps of training, one after the other, by one thread: batches, forward, loss, backward, accumulate, optimise.
#pragma once

#include <cstdint>
#include <vector>

#include "data/batch_source.h"
#include "nn/gpt.h"
#include "optim/optimizer.h"
#include "optim/schedule.h"
#include "train/config.h"
#include "train/observer.h"

namespace quern::train {

// The model's part of a run's config, with the vocabulary that the data has.
ModelConfig model_config(const RunConfig& config, uint32_t vocabulary);

// Packing all weights costs about as much as using each of them once; from this many micro-batches a step on it pays.
inline constexpr size_t kPackFrom = 4;
bool worth_packing(const RunConfig& config);

class Trainer {
 public:
  // `model` and `batches` must outlive the trainer.
  Trainer(const RunConfig& config, Gpt& model, const data::TrainingBatches& batches);

  // The next step. Allocates nothing.
  StepReport step();

  // The mean loss over the windows.
  double evaluate(const data::ValidationBatches& windows);

  uint64_t steps_done() const { return steps_done_; }
  Optimizer& optimizer() { return optimizer_; }
  // After weights and moments were loaded: go on as if `steps` had been done here.
  void resume_after(uint64_t steps);

 private:
  MicroBatch micro_batch(uint32_t first, size_t sequences) const;

  RunConfig config_;
  Gpt& model_;
  const data::TrainingBatches& batches_;
  quern::Schedule schedule_;
  Optimizer optimizer_;
  Gradient gradient_;
  Workspace work_;
  std::vector<int32_t> inputs_, targets_;
  uint64_t steps_done_ = 0;
};

}  // namespace quern::train
