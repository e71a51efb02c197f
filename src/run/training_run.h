// A run in memory: its state, dataset, model and trainer, and the loop over its steps.
#pragma once

#include <atomic>
#include <exception>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include "checkpoint/state.h"
#include "config/config.h"
#include "dataset/dataset.h"
#include "diagnose/health.h"
#include "run/observer.h"
#include "run/run.h"
#include "run/stage.h"

namespace quern::train {

// Thrown if the run is asked to stop during data preparation, when there is nothing to save yet.
struct StoppedEarly {};

// Throws Error: an imported model has neither data nor an optimizer to resume with.
[[noreturn]] void refuse_imported(const std::filesystem::path& folder);

class Run {
 public:
  // Opens the data. `tokenizer_file` is passed to open_dataset(): the run's own for a resumed run, that of the source
  // for a run that starts from another one, given_tokenizer() for other new runs. `observer`, `stop` and `ranks` must
  // outlive this object. All ranks do the same with it; an observer of rank 0 alone is enough.
  Run(const RunConfig& config, const std::filesystem::path& folder, const std::filesystem::path& tokenizer_file,
      Observer& observer, const std::atomic<bool>& stop, const RunRanks& ranks);

  // Error, on every rank, unless all have the same settings and the same text. With data.broadcast, they get it from
  // rank 0. Call first.
  void join_ranks();

  // A new run: allocates everything and sets the initial weights.
  void begin();
  // The same without the weights, and reports what the run would do.
  void preview();
  // Writes the directory of a new run, which must exist: with initial weights from elsewhere, also a checkpoint of
  // them.
  void write_files();
  // A run that exists: loads its newest complete checkpoint, or begins again if there is none. Error if the checkpoint
  // is not of this config and data. `own` is the config in the directory; settings that differ from it are in force
  // from the next step on, and are recorded in the directory before this returns.
  void resume(const RunConfig& own);

  RunResult train();

 private:
  bool has_text() const { return ranks_.writes() || !config_.data.broadcast; }
  void check_ranks() const;
  void share_dataset();
  RunState initial_state() const;
  void initialise();
  void enter_stage();
  bool next_stage();
  void restore(const RunState& saved);
  void report_rereading(const data::StreamPosition& position);
  void record_changes(const RunConfig& own, uint64_t step);
  void check_same_run(const RunConfig& own, const std::optional<RunState>& state) const;
  void check_same_text(const RunConfig& own, const std::optional<RunState>& state) const;
  RunStart start_report();
  double counted_share() const;  // of the positions: those whose targets count
  void report_settings();

  // Whether to stop; the same on all ranks.
  bool is_stopped() const { return ranks_.any(stop_.load(std::memory_order_relaxed)); }
  void train_step();
  void compare_weights() const;
  void report_health();
  void finish_step(const StepReport& report, std::exception_ptr failure);
  [[noreturn]] void end_after(const std::exception_ptr& failure);
  void end();
  void show_weights() const;
  void show_sample() const;
  std::string weights_hash() const;
  std::filesystem::path save();
  void save_and_report() { observer_.on_checkpoint(state_.step, save()); }

  bool handle_incident(const StepReport& step);
  void record_incident(const StepReport& step, IncidentReport& report);
  void roll_back();

  RunConfig config_;  // the newest settings, and the history
  std::filesystem::path folder_;
  Observer& observer_;
  const std::atomic<bool>& stop_;
  const RunRanks& ranks_;
  Warn warn_;
  Dataset dataset_;
  uint64_t program_bytes_ = 0;
  RunState state_;
  Profile* profile_ = nullptr;
  std::unique_ptr<Stage> stage_;  // of the step after state_
  HealthWarnings health_warnings_;
};

}  // namespace quern::train
