// The files of a run's directory, and the configuration in it.
#pragma once

#include <filesystem>

#include "config/config.h"

namespace quern::train {

inline constexpr const char* kConfigFile = "config.toml";
inline constexpr const char* kTokenizerFile = "tokenizer.json";
inline constexpr const char* kCheckpointFolder = "checkpoints";
inline constexpr const char* kIncidentFolder = "incidents";
// The model that adapters belong to: a folder like that of the checkpoints, with one.
inline constexpr const char* kBaseFolder = "base";

// Error if `path` exists and is not a directory.
void expect_folder(const std::filesystem::path& path);

// The config of the run in `folder`; Error if there is none.
RunConfig read_config(const std::filesystem::path& folder);

// Replaces the config of the run in `folder` atomically. Error if it is too large to be read again.
void write_config(const RunConfig& config, const std::filesystem::path& folder);

}  // namespace quern::train
