// Makes a run of adapters that another program has trained.
#pragma once

#include <filesystem>

#include "evaluate/load.h"
#include "formats/import.h"

namespace quern::train {

// Imports a folder of Hugging Face PEFT into a new run that adapts the model of the run `base` (RUN, RUN@best, RUN@STEP
// or a checkpoint), which itself remains unchanged: config.toml, tokenizer.json and the files of
// formats/model_files.h, the base, linked if possible, and a checkpoint of step 0 with the adapters in fp32. If `base`
// has adapters, they are merged into the base of the new run. The run is complete or absent. Error if the adapters are
// not supported, damaged or do not fit the model, or if `run` exists and is not an empty folder. `warn` is told about
// damaged checkpoints of `base`.
formats::Imported import_adapters(const std::filesystem::path& source, const std::filesystem::path& base,
                                  const std::filesystem::path& run, const formats::ImportOptions& options,
                                  const Warn& warn);

}  // namespace quern::train
