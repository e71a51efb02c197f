// The log files in a run's directory.
#pragma once

#include <filesystem>

#include "report/metrics.h"
#include "report/tensorboard.h"
#include "run/observers.h"

namespace quern::report {

// Writes metrics.jsonl, and TensorBoard files while the settings in force enable them.
class RunFiles : public train::Observers {
 public:
  RunFiles(const std::filesystem::path& folder, const train::RunConfig& config)
      : metrics_(folder / "metrics.jsonl", config.log.interval),
        tensorboard_(folder / "tensorboard", config.log.interval, config.log.tensorboard) {
    add(metrics_);
    add(tensorboard_);
  }

 private:
  Metrics metrics_;
  TensorBoard tensorboard_;
};

}  // namespace quern::report
