// The flags from which a run's config is made.
#pragma once

#include <string>
#include <vector>

#include "cli/parser.h"
#include "train/config.h"

namespace quern::cli {

// A setting that came by its own flag.
struct FlagSetting {
  std::string where;    // "--steps 500"
  std::string setting;  // "train.steps=500"
};

struct ConfigOptions {
  std::vector<std::string> data;
  std::string preset = "tiny";
  std::string config_file;
  std::vector<std::string> settings;
  std::vector<FlagSetting> flags;
};

// DATA, --preset, --config, --set, and the flags of single settings. `options` must live until the line has been
// parsed.
void add_config_options(Parser command, ConfigOptions& options);

// The preset, then --config, --set, and the flags of single settings.
train::RunConfig config_of(const ConfigOptions& options);

// For a run that goes on: its config with those settings that may change. Error when others were given.
train::RunConfig config_to_go_on(const ConfigOptions& options, const std::string& run);

}  // namespace quern::cli
