// The log files in a run's directory.
#pragma once

#include <filesystem>
#include <functional>
#include <string>

#include "report/metrics.h"
#include "report/panels.h"
#include "report/tensorboard.h"
#include "run/observers.h"

namespace quern::report {

// What is known of the process that runs, besides what the run reports.
struct RunFilesOptions {
  std::string command = {}, version = {}, commit = {};
  std::function<double()> peak_gflops = {};  // for MFU; 0 if unknown
  bool operations = true;                    // unless something else profiles the run
};

// Writes metrics.jsonl, panels.json, and TensorBoard files while the settings in force enable them.
class RunFiles : public train::Observers {
 public:
  RunFiles(const std::filesystem::path& folder, const train::RunConfig& config, const RunFilesOptions& options = {})
      : folder_(folder),
        config_(config),
        metrics_(folder / "metrics.jsonl", {.interval = config.log.interval,
                                            .process = true,
                                            .operations = options.operations,
                                            .peak_gflops = options.peak_gflops,
                                            .command = options.command,
                                            .version = options.version,
                                            .commit = options.commit,
                                            .data = data_text(config)}),
        tensorboard_(folder / "tensorboard", config.log.interval, config.log.tensorboard) {
    add(metrics_);
    add(tensorboard_);
  }

  void on_start(const train::RunStart& start) override {
    Observers::on_start(start);  // first: an Error if the directory belongs to something else
    write_panels(folder_, config_, {.floor = start.floor, .loss_parts = start.loss_parts});
  }

 private:
  std::filesystem::path folder_;
  train::RunConfig config_;
  Metrics metrics_;
  TensorBoard tensorboard_;
};

}  // namespace quern::report
