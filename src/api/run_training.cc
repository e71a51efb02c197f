#include "api/run_training.h"

#include <atomic>
#include <exception>
#include <limits>

#include "checkpoint/checkpoint.h"
#include "config/data_sources.h"
#include "config/history.h"
#include "config/run_folder.h"
#include "core/error.h"
#include "evaluate/load.h"
#include "report/run_files.h"
#include "run/observers.h"
#include "run/run.h"
#include "run/source_run.h"

namespace quern::api {
namespace {

// Calls the callbacks of the options. An exception from a callback must not propagate through the run while the run can
// still be saved: it stops the run, and rethrow() throws it afterwards.
class Callbacks : public train::Observer {
 public:
  explicit Callbacks(const TrainOptions& options) : options_(options) {}

  const std::atomic<bool>& stop() const { return stop_; }
  void rethrow() const {
    if (thrown_) std::rethrow_exception(thrown_);
  }

  void on_preparing(std::string_view what, uint64_t done, uint64_t total) override {
    if (options_.on_preparing) options_.on_preparing(what, done, total);  // nothing to save yet: may throw
  }
  void on_start(const train::RunStart& start) override { step_.steps = start.steps; }
  void on_step(const train::StepReport& report) override;
  void on_validation(uint64_t, double loss) override { step_.validation_loss = loss; }
  void on_step_end(uint64_t) override {
    call([&] {
      if (options_.on_step && !options_.on_step(step_)) stop_.store(true, std::memory_order_relaxed);
    });
  }
  void on_warning(const std::string& text) override {
    call([&] {
      if (options_.on_warning) options_.on_warning(text);
    });
  }

 private:
  template <typename Function>
  void call(const Function& function) {
    try {
      function();
    } catch (...) {
      if (!thrown_) thrown_ = std::current_exception();
      stop_.store(true, std::memory_order_relaxed);  // runs on the training thread
    }
  }

  const TrainOptions& options_;
  Step step_;
  std::exception_ptr thrown_;
  std::atomic<bool> stop_{false};
};

void Callbacks::on_step(const train::StepReport& report) {
  step_ = {.step = report.step,
           .steps = step_.steps,
           .loss = report.loss,
           .validation_loss = {},
           .learning_rate = report.rate,
           .gradient_norm = report.gradient_norm,
           .skipped = report.skipped(),
           .tokens = report.tokens,
           .seconds = report.seconds};
}

std::string newest_hash(const std::filesystem::path& folder, train::Observer& observer) {
  const auto warn = [&](const std::string& text) { observer.on_warning(text); };
  const auto newest = train::newest_checkpoint(folder, warn, checkpoint::Parts::kWeights);
  return newest ? checkpoint::weights_hash(newest->model()) : "";
}

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
  TrainResult result{.path = options.out,
                     .step = run.step,
                     .finished = run.finished,
                     .loss = run.loss.value_or(std::numeric_limits<double>::quiet_NaN()),
                     .validation_loss = run.validation_loss,
                     .weights_hash = newest_hash(folder, callbacks)};
  callbacks.rethrow();
  return result;
}

}  // namespace quern::api
