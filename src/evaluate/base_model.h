// The model that a run adapts: its adapters are in checkpoints, the model itself once in the run's folder `base`.
#pragma once

#include <filesystem>

#include "checkpoint/checkpoint.h"
#include "nn/models/language_model.h"

namespace quern::train {

// Opens the base of the run in `folder`. Error if it is missing or damaged.
checkpoint::Checkpoint open_base(const std::filesystem::path& folder);

// Loads it into the weights of `model` that are not those of adapters.
void load_base(const std::filesystem::path& folder, nn::LanguageModel& model);

// Makes a complete checkpoint the base of the run in `folder`: its files but those of the optimizer, linked if both are
// on one file system, otherwise copied.
void link_base(const std::filesystem::path& checkpoint, const std::filesystem::path& folder);

}  // namespace quern::train
