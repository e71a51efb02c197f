// A run in memory: its state, dataset, model and trainer, and the loop over its steps.
#pragma once

#include <atomic>
#include <exception>
#include <filesystem>
#include <memory>
#include <string>

#include "checkpoint/state.h"
#include "config/config.h"
#include "data/batch_reader.h"
#include "dataset/dataset.h"
#include "diagnose/health.h"
#include "nn/models/language_model.h"
#include "run/observer.h"
#include "run/run.h"
#include "run/run_checkpoints.h"
#include "run/validation.h"
#include "train/plan.h"
#include "train/trainer.h"

namespace quern::train {

// Thrown if the run is asked to stop during data preparation, when there is nothing to save yet.
struct StoppedEarly {};

class Run {
 public:
  // Opens the data and allocates everything. `tokenizer_file` is passed to open_dataset(): the run's own for a resumed
  // run, given_tokenizer() for a new one. `observer` and `stop` must outlive this object.
  Run(const RunConfig& config, const std::filesystem::path& folder, const std::filesystem::path& tokenizer_file,
      Observer& observer, const std::atomic<bool>& stop);

  // The directory of a new run, which must exist.
  void write_files() const;
  // Initial weights.
  void initialise() { model_->initialise(config_.train.seed); }
  // Loads the newest complete checkpoint; false if there is none. Error if it is not of this config and data.
  bool load();

  RunResult train();

 private:
  RunState initial_state() const;
  void restore(const RunState& saved);
  void check_same_run(const RunState& state) const;
  RunStart start_report();

  void report_health();
  void finish_step(const StepReport& report, std::exception_ptr failure);
  [[noreturn]] void end_after(const std::exception_ptr& failure);
  void end();
  void show_weights() const;
  std::filesystem::path save();
  void save_and_report() { observer_.on_checkpoint(state_.step, save()); }

  bool handle_incident(const StepReport& step);
  void record_incident(const StepReport& step, IncidentReport& report);
  void roll_back();

  RunConfig config_;
  std::filesystem::path folder_;
  Observer& observer_;
  const std::atomic<bool>& stop_;
  Warn warn_;
  Dataset dataset_;
  Plan plan_;
  std::unique_ptr<data::BatchSource> batches_;
  std::unique_ptr<nn::LanguageModel> model_;
  RunState state_;
  Trainer trainer_;
  RunCheckpoints checkpoints_;
  Validation validation_;
  Health health_;
  HealthWarnings health_warnings_;
};

}  // namespace quern::train
