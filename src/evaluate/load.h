// Opens a trained model in the directory of its run, or loads it into memory.
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
#include "formats/export.h"
#include "nn/models/language_model.h"

namespace quern::train {

// Called with each warning.
using Warn = std::function<void(const std::string& text)>;

// A checkpoint of a run and what is needed to use it. The weights stay in the file.
struct SavedModel {
  std::filesystem::path folder;  // of the run
  RunConfig config;
  nn::ModelConfig model;
  checkpoint::Checkpoint checkpoint;           // verified
  std::unique_ptr<data::Tokenizer> tokenizer;  // null for a run on token shards
  std::optional<checkpoint::Checkpoint> base;  // of an adapted model: the checkpoint has its adapters alone

  // Every parameter of the model, in its order; adapters are merged. Reads the files, which must stay open.
  std::vector<formats::TensorSource> weights() const;

  // Writes the model for another program (formats/export.h), from the file, without loading it.
  formats::ExportResult export_to(const std::filesystem::path& out, const formats::ExportOptions& options) const;
};

struct TrainedModel {
  std::filesystem::path folder;
  RunConfig config;
  std::unique_ptr<nn::LanguageModel> model;    // weights packed for inference
  std::unique_ptr<data::Tokenizer> tokenizer;  // null for a run on token shards
  RunState state;
  std::vector<int32_t> end_tokens;  // besides the tokenizer's end of text: those of generation_config.json, if any

  // The tokenizer; Error if there is none.
  const data::Tokenizer& needed_tokenizer() const;

  // Its weights, as a checkpoint stores them: of an adapted model, those of its adapters.
  std::vector<checkpoint::TensorRef> weights() const;

  // Writes the model for another program (formats/export.h).
  formats::ExportResult export_to(const std::filesystem::path& out, const formats::ExportOptions& options = {}) const;
};

// Error if `config`, that of the run in `folder`, is one of self-play.
void expect_language_model(const RunConfig& config, const std::filesystem::path& folder);

// The newest complete checkpoint of the run in `folder`, with a warning for each newer one that is damaged. nullopt if
// nothing has been saved yet. Error, without warnings, if all checkpoints are damaged.
std::optional<checkpoint::Checkpoint> newest_checkpoint(const std::filesystem::path& folder, const Warn& warn,
                                                        checkpoint::Parts parts);

// The model of a checkpoint, by default the newest complete one of the run in `folder`. find_checkpoint() explains the
// arguments. Error if there is no run or no such checkpoint, or if the chosen one is damaged.
SavedModel open_model(const std::filesystem::path& folder, const Warn& warn, std::string_view wanted = {});
TrainedModel load_model(const std::filesystem::path& folder, const Warn& warn, std::string_view wanted = {});

}  // namespace quern::train
