#include <quern/finetune.h>

#include <fmt/format.h>

#include "api/finetune_config.h"
#include "api/run_training.h"
#include "api/threads.h"

namespace quern {
namespace {

void apply(train::RunConfig& config, const FinetuneOptions& options) {
  for (const std::string& setting : options.settings) train::apply_setting(config, setting, "settings");
  const auto set = [&](const char* setting, const auto& value, const char* where) {
    if (value) train::apply_setting(config, fmt::format("{}={}", setting, *value), where);
  };
  set("lora.rank", options.rank, "rank");
  set("lora.alpha", options.alpha, "alpha");
  set("lora.dropout", options.dropout, "dropout");
  if (!options.targets.empty()) train::apply_value(config, "lora.targets", options.targets, "targets");
  set("data.epochs", options.epochs, "epochs");
  set("train.steps", options.steps, "steps");
  set("optimizer.rate", options.rate, "rate");
  set("train.batch", options.batch, "batch");
  set("model.context", options.context, "context");
  set("train.seed", options.seed, "seed");
  if (options.threads > 0) config.train.threads = api::threads_from(options.threads);
}

}  // namespace

TrainResult finetune(const FinetuneOptions& options) {
  const train::RunConfig config =
      api::finetune_config(options, [&](train::RunConfig& found) { apply(found, options); });
  return api::run_training(api::training_of(options), config);
}

}  // namespace quern
