// Runs training and shows its progress, for the commands that train.
#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>

#include "config/config.h"
#include "dist/communicator.h"
#include "run/run.h"

namespace quern::cli {

// train::start_run(), train::resume_run(), or what takes their place.
using RunFunction = std::function<train::RunResult(const train::RunConfig&, const std::filesystem::path&,
                                                   train::Observer&, const std::atomic<bool>&, dist::Communicator*)>;

struct TrainingOptions {
  std::string command;  // its name, to resume with
  std::string run = {};
  bool resume = false;
  bool profile = false;
  std::string trace = {};
  std::optional<uint64_t> dashboard = {};  // the port of a dashboard
  RunFunction start = train::start_run, resumed = train::resume_run;
};

// The settings of the run. Several ranks all call it; the argument is null for one process.
using Settings = std::function<train::RunConfig(const dist::Communicator* ranks)>;

// Starts or resumes the run, with as many ranks as mpirun has started, and returns the exit code.
int run_training(const TrainingOptions& options, const Settings& settings);

// Shows what start_run() would do with these settings: model, data, memory, time. Writes nothing.
int show_training(const train::RunConfig& config);

}  // namespace quern::cli
