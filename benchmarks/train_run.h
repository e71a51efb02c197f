// A model in training on random tokens, for benchmarks: the speed does not depend on the tokens.
#pragma once

#include <cstdint>
#include <memory>

#include "data/token_buffer.h"
#include "nn/models/transformer.h"
#include "train/trainer.h"

namespace quern::bench {

std::unique_ptr<data::TokenBuffer> random_tokens(uint64_t vocabulary);

// The configuration with which `quern bench train` trains a preset.
uint64_t vocabulary_of_preset(const std::string& preset);

struct TrainRun {
  // `tokens` must outlive the run.
  TrainRun(const train::RunConfig& config, uint64_t vocabulary, const data::TokenBuffer& tokens, size_t teams = 0);

  // Seconds for this many steps.
  double steps(uint64_t count);
  bool same_weights(const TrainRun& other) const;

  data::TrainingBatches batches;
  train::Plan plan;
  nn::Transformer model;
  RunState state;
  std::unique_ptr<train::Trainer> trainer;
};

}  // namespace quern::bench
