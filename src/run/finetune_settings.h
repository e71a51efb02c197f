// The settings that fine-tuning starts from.
#pragma once

#include <filesystem>
#include <functional>
#include <string>

#include "config/config.h"

namespace quern::train {

// Of a new run that fine-tunes the model of a run, or of a checkpoint (as for config_from()), on conversations: one
// epoch, AdamW with a cosine schedule. Adapters of rank 16 for all linear layers or, if `full`, all weights with a
// tenth of the learning rate.
RunConfig finetune_config(const std::filesystem::path& base, bool full = false);

// Error if all weights were asked for (`full`) and settings that were applied ask for adapters, which would be trained
// instead.
void check_full(const RunConfig& config, bool full);

// How long the run is, after settings were applied: steps that were given without epochs replace them, and epochs that
// were given without steps decide the number of steps, also of a run that is resumed.
void choose_length(RunConfig& config);

// Whether base_run() would import `base` into `import_to`.
bool needs_import(const std::filesystem::path& base, const std::filesystem::path& import_to);

// The run that `base` names: a run or checkpoint as it is; a Hugging Face folder or a GGUF file is imported into
// `import_to`, unless an earlier import of the same file is there; Error if the file has changed since. `report` is
// told of an import.
std::filesystem::path base_run(const std::filesystem::path& base, const std::filesystem::path& import_to,
                               const std::function<void(const std::string&)>& report);

}  // namespace quern::train
