// The trained model that a new run starts from (init.from).
#pragma once

#include <filesystem>
#include <string>

#include "config/config.h"
#include "evaluate/load.h"
#include "nn/models/language_model.h"

namespace quern::train {

// The settings for a new run that starts from `from`: a run (its newest checkpoint), RUN@best (the checkpoint with the
// lowest validation loss), RUN@STEP, or the directory of a checkpoint in a run. These are the newest settings of that
// run, without its history, for text and all weights; an imported model has no number of steps, so the default takes
// its place. Error if there is no such run.
RunConfig config_from(const std::filesystem::path& from);

// Replaces init.from by the absolute path of the checkpoint, and sets init.weights_hash, or checks it if it is set
// already. Error if there is no such checkpoint, if the model's sizes or the tokenizer differ from those of the source,
// or if the data needs a tokenizer that the source does not have. Returns the source's tokenizer.json, which exists
// unless both runs use token shards.
std::filesystem::path resolve_source(RunConfig& config, const Warn& warn);

// Copies the files of formats/model_files.h, such as a chat template, from the run of a resolved source to `folder`.
void copy_model_files(const RunConfig::Init& init, const std::filesystem::path& folder);

// Loads the weights of a resolved source, with its adapters, if it has any, merged. Those of the model's own adapters
// are unchanged. Error if they are no longer there.
void load_source(const RunConfig::Init& init, nn::LanguageModel& model);

// Makes the weights of a resolved source the base of the adapted run in `folder` (evaluate/base_model.h). `state` is
// that of the new run.
void write_base(const RunConfig::Init& init, const RunState& state, const std::filesystem::path& folder);

}  // namespace quern::train
