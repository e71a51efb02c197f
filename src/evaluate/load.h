// Loads a trained model from the directory of its run.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "checkpoint/checkpoint.h"
#include "config/config.h"
#include "data/tokenizer.h"
#include "nn/models/language_model.h"

namespace quern::train {

// Called with each warning.
using Warn = std::function<void(const std::string& text)>;

struct TrainedModel {
  std::filesystem::path folder;
  RunConfig config;
  std::unique_ptr<nn::LanguageModel> model;    // weights packed for inference
  std::unique_ptr<data::Tokenizer> tokenizer;  // null for a run on token shards
  RunState state;

  // The tokenizer; Error if there is none.
  const data::Tokenizer& needed_tokenizer() const;
};

// The newest complete checkpoint of the run in `folder`, with a warning for each newer one that is damaged. nullopt if
// nothing has been saved yet. Error, without warnings, if all checkpoints are damaged.
std::optional<checkpoint::Checkpoint> newest_checkpoint(const std::filesystem::path& folder, const Warn& warn,
                                                        checkpoint::Parts parts);

// The model of a checkpoint, or of the newest complete one of a run. Error if there is no run or no checkpoint.
TrainedModel load_model(const std::filesystem::path& path, const Warn& warn);

}  // namespace quern::train
