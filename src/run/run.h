// A run: a directory with everything that determines its result. It can be interrupted and resumed until its last step.
#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <optional>

#include "config/config.h"
#include "dist/communicator.h"
#include "run/observer.h"

namespace quern::train {

struct RunResult {
  uint64_t step = 0;  // steps completed in total
  bool finished = false;
  std::optional<double> loss = {};  // of the last step of the run; nullopt if it had none
  std::optional<double> validation_loss = {};
  bool prepared = true;  // false: stopped during data preparation; nothing was written
  bool resumed = true;   // false: the run had finished before, and no step was left
};

// Starts a run in `folder`, which must be new, empty, or left by a killed start. Error, without changing anything, if
// it contains other files or if the config or data cannot be trained on. With init.from, the run starts from the
// weights and the tokenizer of another run (run/source_run.h). A config with a history gives the run that it is the
// history of. Like resume_run(), holds the run's lock (run_lock.h) until it returns; Error if another process has it.
// Setting `stop`, from any thread, saves a checkpoint and returns after the current step.
//
// Of several ranks, which train together, all make the same call; rank 0 writes the directory. A failure of one ends
// all of them.
RunResult start_run(const RunConfig& config, const std::filesystem::path& folder, Observer& observer,
                    const std::atomic<bool>& stop, dist::Communicator* ranks = nullptr);

// Does what start_run() does before it writes anything, and reports what it would do (Observer::on_start).
void preview_run(const RunConfig& config, Observer& observer, const std::atomic<bool>& stop);

// Resumes the run in `folder` from its newest complete checkpoint, or from the beginning if there is none. The result
// is bit-identical to an uninterrupted run with the same history. Settings of `config` that differ from the run's own
// are in force from the next step on and are recorded in the run's history (config/history.h); Error if they must not
// change, if there are fewer steps than the run has done, or if the data is not the same in another place.
RunResult resume_run(const RunConfig& config, const std::filesystem::path& folder, Observer& observer,
                     const std::atomic<bool>& stop, dist::Communicator* ranks = nullptr);

}  // namespace quern::train
