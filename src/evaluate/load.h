// Loads a trained model from the directory of its run.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

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
  std::vector<int32_t> end_tokens;  // besides the tokenizer's end of text: those of generation_config.json, if any

  // The tokenizer; Error if there is none.
  const data::Tokenizer& needed_tokenizer() const;

  // Its weights, as a checkpoint stores them.
  std::vector<checkpoint::TensorRef> weights() const;

  // Writes a folder for Hugging Face `transformers` and returns the names of its files (checkpoint/hf_export.h).
  std::vector<std::string> export_to(const std::filesystem::path& folder) const;
};

// The newest complete checkpoint of the run in `folder`, with a warning for each newer one that is damaged. nullopt if
// nothing has been saved yet. Error, without warnings, if all checkpoints are damaged.
std::optional<checkpoint::Checkpoint> newest_checkpoint(const std::filesystem::path& folder, const Warn& warn,
                                                        checkpoint::Parts parts);

// The model of a checkpoint, by default the newest complete one of the run in `folder`. find_checkpoint() explains the
// arguments. Error if there is no run or no such checkpoint, or if the chosen one is damaged.
TrainedModel load_model(const std::filesystem::path& folder, const Warn& warn, std::string_view wanted = {});

}  // namespace quern::train
