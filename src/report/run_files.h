// The files about a run's course that lie in its folder.
#pragma once

#include <filesystem>

#include "report/metrics.h"
#include "report/tensorboard.h"
#include "train/observers.h"

namespace quern::report {

// metrics.jsonl, and TensorBoard's files where the config asks for them.
class RunFiles : public train::Observers {
 public:
  RunFiles(const std::filesystem::path& folder, const train::RunConfig& config)
      : metrics_(folder / "metrics.jsonl", config.log.interval),
        tensorboard_(folder / "tensorboard", config.log.interval) {
    add(metrics_);
    if (config.log.tensorboard) add(tensorboard_);
  }

 private:
  Metrics metrics_;
  TensorBoard tensorboard_;
};

}  // namespace quern::report
