// Finds one of the checkpoints of a run.
#pragma once

#include <filesystem>
#include <optional>

namespace quern::train {

struct CheckpointPath {
  std::filesystem::path run;
  std::optional<std::filesystem::path> checkpoint;  // nullopt: the newest complete one
};

// What `path` names: RUN/checkpoints/step-00000500 is a checkpoint, anything else a run, whether or not it exists.
CheckpointPath find_checkpoint(const std::filesystem::path& path);

}  // namespace quern::train
