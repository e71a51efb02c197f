#include "api/run_training.h"

#include "api/callbacks.h"
#include "config/data_sources.h"
#include "config/history.h"
#include "config/run_folder.h"
#include "core/error.h"
#include "report/run_files.h"
#include "run/observers.h"
#include "run/run.h"
#include "run/source_run.h"

namespace quern::api {
namespace {

void check_sources(const TrainOptions& options) {
  if (options.init_from.empty()) return;
  if (options.resume) throw Error("[train] init_from starts a new run, resume continues one; give one of the two");
  if (options.preset) throw Error("[train] init_from: takes all settings that are not given from its run; omit preset");
}

}  // namespace

train::RunConfig completed(train::RunConfig config, const std::function<void(train::RunConfig&)>& apply) {
  config.given = {};
  const train::RunConfig::Data base = config.data;
  apply(config);
  train::replace_data(base, config.data);
  train::lower_min_rate(config);
  train::resolve_paths(config);
  return config;
}

train::RunConfig run_config(const TrainOptions& options, const std::function<void(train::RunConfig&)>& apply) {
  check_sources(options);
  if (options.resume) {
    const train::RunConfig own = train::read_config(options.out);
    train::RunConfig config = completed(own, apply);
    // The same call with `resume` continues the run: its preset must have the model of the run.
    if (options.preset) {
      train::RunConfig given = completed(train::preset(*options.preset), apply);
      given.history = own.history;
      train::check_resumable(own, given, options.out.string());
    }
    return config;
  }
  if (options.init_from.empty()) return completed(train::preset(options.preset.value_or("tiny")), apply);
  train::RunConfig config = train::config_from(options.init_from);
  const train::RunConfig::Init init = config.init;
  config = completed(config, apply);
  config.init = init;
  return config;
}

TrainResult run_training(const TrainOptions& options, const train::RunConfig& config) {
  // Absolute, because a callback may change the working directory.
  const std::filesystem::path folder = std::filesystem::absolute(options.out);
  Callbacks callbacks(options);
  report::RunFiles files(folder, config);
  train::Observers observers{&files, &callbacks};
  const auto go = options.resume ? train::resume_run : train::start_run;
  const train::RunResult run = go(config, folder, observers, callbacks.stop(), nullptr);
  TrainResult result = result_of(run, options.out, folder, callbacks);
  callbacks.rethrow();
  return result;
}

}  // namespace quern::api
