// Finds one of the checkpoints of a run.
#pragma once

#include <filesystem>
#include <optional>
#include <string_view>

namespace quern::train {

struct CheckpointPath {
  std::filesystem::path run;
  std::optional<std::filesystem::path> checkpoint;  // nullopt: the newest complete one
};

// `folder` is a run, or a checkpoint in the directory of one, or RUN@WANTED if `wanted` is empty. `wanted` is "newest",
// "best" (the lowest validation loss of those that were retained), the number of a step, or the path of a checkpoint;
// empty is "newest" for a run, and the checkpoint itself if `folder` is one. Error, listing what is there, if there is
// no such checkpoint. Does not verify the checkpoint.
CheckpointPath find_checkpoint(const std::filesystem::path& folder, std::string_view wanted);

}  // namespace quern::train
