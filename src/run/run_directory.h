// Whether the directory of a run may be used: for a run that starts, and for one that is resumed.
#pragma once

#include <filesystem>

namespace quern::train {

// Error unless a run can be started in `folder` without touching unrelated files.
void check_free(const std::filesystem::path& folder);

// Removes what a start that failed, as on a full disk, has written, so that it can be tried again. The folder is
// locked, and was free before.
void remove_left_by_start(const std::filesystem::path& folder);

// Error unless the directory has a checkpoint, or a config.toml with train.seed, as every started run writes. Otherwise
// an empty config.toml, or one of another program, would be taken for a run with default settings.
void check_started(const std::filesystem::path& folder);

}  // namespace quern::train
