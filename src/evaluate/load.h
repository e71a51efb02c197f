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

// A run, or one of its checkpoints.
struct RunPath {
  std::filesystem::path folder;                     // of the run
  std::optional<std::filesystem::path> checkpoint;  // nullopt: the newest
};

// What `path` names: RUN/checkpoints/step-00000500 is a checkpoint, anything else a run, whether or not it exists.
RunPath run_path(const std::filesystem::path& path);

// The newest complete checkpoint of the run in `folder`, with a warning for each newer one that is damaged. nullopt if
// nothing has been saved yet. Error, without warnings, if all checkpoints are damaged.
std::optional<checkpoint::Checkpoint> newest_checkpoint(const std::filesystem::path& folder, const Warn& warn,
                                                        checkpoint::Parts parts);

// The checkpoint that `run` names, or else the newest. nullopt and Error as above.
std::optional<checkpoint::Checkpoint> find_checkpoint(const RunPath& run, const Warn& warn, checkpoint::Parts parts);

// The model of a checkpoint, or of the newest complete one of a run. Error if there is no run or no checkpoint.
TrainedModel load_model(const std::filesystem::path& path, const Warn& warn);

}  // namespace quern::train
