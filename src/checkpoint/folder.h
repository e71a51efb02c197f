// The checkpoints of a run: which exist, which to resume from, which to retain.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "checkpoint/checkpoint.h"

namespace quern::checkpoint {

std::string directory_name(uint64_t step);                           // "step-00000500"
std::optional<uint64_t> step_of(const std::filesystem::path& path);  // nullopt for any other name

// The steps that have a directory in `folder`, valid or not, in ascending order. Empty if the folder is missing.
std::vector<uint64_t> list_steps(const std::filesystem::path& folder);

// Called with the reason for each checkpoint that was skipped, newest first.
using OnInvalid = std::function<void(const std::string& reason)>;

// The step with the lowest validation loss, according to the state of each; nullopt if none has one. Among equal
// losses, the earliest.
std::optional<uint64_t> best_step(const std::filesystem::path& folder);

// The newest valid checkpoint; nullopt if there is none.
std::optional<Checkpoint> find_newest_valid(const std::filesystem::path& folder, const OnInvalid& on_invalid,
                                            Parts parts = Parts::kAll);

struct Retention {
  size_t keep = 3;        // the newest ones; at least 1
  bool keep_best = true;  // also the one with the lowest validation loss
};

// After a save of step `newest`, removes the checkpoints that `retention` does not retain. Directories of later steps
// are neither removed nor counted: they can only exist because they were skipped as invalid, and counting them could
// remove the last valid ones. Directories with foreign files remain. Returns the removed steps.
std::vector<uint64_t> remove_old(const std::filesystem::path& folder, uint64_t newest, const Retention& retention);

}  // namespace quern::checkpoint
