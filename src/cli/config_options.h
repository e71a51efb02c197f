// Command-line flags that define a run's config.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "cli/parser.h"
#include "config/config.h"

namespace quern::cli {

// A setting given by its own flag.
struct FlagSetting {
  std::string where;    // "--steps 500"
  std::string setting;  // "train.steps=500"
};

struct ConfigOptions {
  std::vector<std::string> data;
  std::string preset;  // empty: tiny
  std::string config_file;
  std::vector<std::string> settings;
  std::vector<FlagSetting> flags;
  std::string from;  // a run or checkpoint to start from
};

// A flag that sets one setting.
struct SettingFlag {
  const char* name;     // "--steps"
  const char* setting;  // "train.steps"
  const char* help;     // empty: "Same as --set ..."
};

// Adds DATA, --preset, --config, --set and the flags of single settings. `options` must outlive parsing.
void add_config_options(Parser command, ConfigOptions& options);
// Adds --config, --set and these flags.
void add_setting_flags(Parser command, ConfigOptions& options, std::span<const SettingFlag> flags);

// The preset, or with `from` the settings of that run; then --config, --set and the flags of single settings.
train::RunConfig config_of(const ConfigOptions& options);

// `base` with the given settings applied.
train::RunConfig config_of(const ConfigOptions& options, train::RunConfig base);

// For resuming: the run's own config with the given settings applied. train::resume_run() checks that they may change.
train::RunConfig config_to_resume(const ConfigOptions& options, const std::string& run);

}  // namespace quern::cli
