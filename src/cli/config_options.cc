#include "cli/config_options.h"

#include <fmt/format.h>

#include "config/data_sources.h"
#include "config/run_folder.h"
#include "core/error.h"
#include "core/team.h"
#include "core/text.h"
#include "learn/settings.h"
#include "run/source_run.h"

namespace quern::cli {
namespace {

// The most frequently changed settings have their own flags.
constexpr SettingFlag kFlags[] = {
    {"--steps", "train.steps", ""},
    {"--batch", "train.batch", ""},
    {"--seed", "train.seed", ""},
    {"--layers", "model.layers", ""},
    {"--heads", "model.heads", ""},
    {"--width", "model.width", ""},
    {"--context", "model.context", ""},
    {"--dropout", "model.dropout", ""},
    {"--rate", "optimizer.rate", ""},
    {"--tokenizer", "data.tokenizer", ""},
    {"--accumulation", "train.accumulation", ""},
    {"--precision", "train.precision", "Storage format of matrices and activations: fp32, bf16 or fp16"},
    {"--recompute", "train.recompute",
     "Activations to recompute in backward: auto, none, every-layer, sqrt or interval=K; does not affect the result"},
    {"--memory", "train.memory", "Memory limit of the run, such as 512M or 2G; does not affect the result"},
    {"--threads", "train.threads", "Worker threads, 1 to 64 (default: all cores); does not affect the result"},
};
static_assert(kMaxThreads == 64);  // the help text contains this number

void add_flag(Parser command, ConfigOptions& options, const SettingFlag& flag) {
  const auto add = [&options, &flag](const std::string& value) {
    options.flags.push_back(
        {fmt::format("{} {}", flag.name, in_quotes(value)), std::string(flag.setting) + "=" + value});
  };
  const std::string help = *flag.help != '\0' ? flag.help : fmt::format("Same as --set {}=VALUE", flag.setting);
  command.add_text(flag.name, add, "VALUE", help);
}

// In a file, 0 means all cores. On the command line it can only be a mistake, so the range here starts at 1.
void check_threads(const FlagSetting& flag) {
  constexpr std::string_view kSetting = "train.threads=";
  if (!flag.setting.starts_with(kSetting)) return;
  std::string value = flag.setting.substr(kSetting.size());
  const std::string problem = check_whole_number(value, {1, kMaxThreads});
  if (!problem.empty()) throw Error("[config] {}: {}", flag.where, problem);
}

void apply(train::RunConfig& config, const ConfigOptions& options, bool resume) {
  const train::RunConfig::Data base = config.data;
  if (!options.config_file.empty()) train::apply_toml_file(config, options.config_file);
  for (const std::string& setting : options.settings) train::apply_setting(config, setting);
  for (const FlagSetting& flag : options.flags) {
    check_threads(flag);
    train::apply_setting(config, flag.setting, flag.where);
  }
  if (!options.data.empty()) config.data.paths = options.data;
  train::replace_data(base, config.data);
  train::lower_min_rate(config);
  if (config.is_selfplay() && !resume) learn::fit_warmup(config);
  train::resolve_paths(config);
}

}  // namespace

void add_config_options(Parser command, ConfigOptions& options) {
  command.add_words("DATA", options.data, "Text files, directories, .jsonl files or token shards (.bin)");
  command.add_text("--preset", options.preset, "NAME",
                   "Base configuration: " + train::preset_list() + "; tiny by default");
  add_setting_flags(command, options, kFlags);
}

void add_setting_flags(Parser command, ConfigOptions& options, std::span<const SettingFlag> flags) {
  command.add_text("--config", options.config_file, "FILE", "TOML file with settings; overrides the preset");
  command.add_list("--set", options.settings, "TABLE.NAME=VALUE", "Set one setting; overrides --config; repeatable");
  for (const SettingFlag& flag : flags) add_flag(command, options, flag);
}

train::RunConfig config_of(const ConfigOptions& options) {
  if (!options.from.empty() && !options.preset.empty()) {
    throw Error("--from takes all settings that are not given from {}; omit --preset", in_quotes(options.from));
  }
  return config_of(options, options.from.empty() ? train::preset(options.preset.empty() ? "tiny" : options.preset)
                                                 : train::config_from(options.from));
}

train::RunConfig config_of(const ConfigOptions& options, train::RunConfig config) {
  const train::RunConfig::Init init = config.init;
  apply(config, options, false);
  if (!init.from.empty()) config.init = init;
  train::validate(config);
  return config;
}

train::RunConfig config_to_resume(const ConfigOptions& options, const std::string& run) {
  if (!options.from.empty()) throw Error("--from starts a new run, --resume continues one; give one of the two");
  if (!options.preset.empty()) {
    throw Error("--resume continues a run with its own settings; omit --preset and give those that change");
  }
  train::RunConfig config = train::read_config(run);
  config.given = {};
  apply(config, options, true);
  return config;
}

}  // namespace quern::cli
