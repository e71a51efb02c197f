// Runs training and shows its progress, for the commands that train.
#pragma once

#include <functional>
#include <string>

#include "config/config.h"
#include "dist/communicator.h"

namespace quern::cli {

struct TrainingOptions {
  std::string command;  // its name, to resume with
  std::string run = {};
  bool resume = false;
  bool profile = false;
  std::string trace = {};
};

// The settings of the run. Several ranks all call it; the argument is null for one process.
using Settings = std::function<train::RunConfig(const dist::Communicator* ranks)>;

// Starts or resumes the run, with as many ranks as mpirun has started, and returns the exit code.
int run_training(const TrainingOptions& options, const Settings& settings);

// Shows what start_run() would do with these settings: model, data, memory, time. Writes nothing.
int show_training(const train::RunConfig& config);

}  // namespace quern::cli
