// Texts that a run writes while it trains, so that one can read what it has learned so far.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "config/config.h"
#include "dataset/dataset.h"
#include "generate/generate.h"
#include "nn/models/language_model.h"
#include "run/observer.h"

namespace quern::train {

// Every log.sample_interval steps, a continuation of log.sample_prompt or, without one, of a line feed; of a run on
// conversations, an answer to it or to the first question that was held out. Depends on the weights, the seed of the
// run and the step, not on threads or on samples before; changes nothing.
class Samples {
 public:
  static constexpr size_t kTokens = 64;
  // A little below 1: the most likely words of a young model are more telling than its noise.
  static constexpr float kTemperature = 0.8f;

  // `config`, `dataset` and `folder`, that of the run, must outlive this object. Error if the prompt cannot be encoded.
  Samples(const RunConfig& config, const Dataset& dataset, const std::filesystem::path& folder);

  // Whether a sample is due after this step: never without a tokenizer.
  bool is_due(uint64_t step) const;
  // Error if the model's logits are not numbers, or the chat template refuses the prompt.
  SampleReport write(const nn::LanguageModel& model, uint64_t step, size_t threads) const;

 private:
  struct Question {
    std::vector<int32_t> tokens, ends;
    std::string text;
  };
  Question question() const;
  Question held_out_question() const;
  Question asked_question() const;

  const RunConfig& config_;
  const Dataset& dataset_;
  const std::filesystem::path& folder_;
};

}  // namespace quern::train
