#include "evaluate/find_checkpoint.h"

#include "checkpoint/folder.h"
#include "config/run_folder.h"

namespace quern::train {

CheckpointPath find_checkpoint(const std::filesystem::path& path) {
  std::filesystem::path full = std::filesystem::absolute(path).lexically_normal();
  if (!full.has_filename()) full = full.parent_path();  // RUN/ is RUN
  const bool named = checkpoint::step_of(full) && full.parent_path().filename() == kCheckpointFolder;
  if (!named || !std::filesystem::is_directory(full)) return {path, std::nullopt};
  return {full.parent_path().parent_path(), path};
}

}  // namespace quern::train
