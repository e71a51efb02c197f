#include <quern/train.h>

#include "api/run_training.h"
#include "api/threads.h"
#include "core/error.h"

namespace quern {
namespace {

void apply(train::RunConfig& config, const TrainOptions& options) {
  if (!options.config.empty()) train::apply_toml_file(config, options.config);
  for (const std::string& setting : options.settings) train::apply_setting(config, setting, "settings");
  if (options.steps) train::apply_setting(config, "train.steps=" + std::to_string(*options.steps), "steps");
  if (options.threads > 0) config.train.threads = api::threads_from(options.threads);
  if (!options.data.empty()) config.data.paths.assign(options.data.begin(), options.data.end());
}

}  // namespace

TrainResult train_model(const TrainOptions& options) {
  if (options.out.empty()) throw Error("[train] out: expected a folder for the run, found none");
  return api::run_training(options, api::run_config(options, [&](train::RunConfig& c) { apply(c, options); }));
}

std::string preset_config(std::string_view name) { return train::to_toml(train::preset(name)); }

}  // namespace quern
