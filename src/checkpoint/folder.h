// The checkpoints of a run: which are there, which to resume from, which to keep.
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
std::optional<uint64_t> step_of(const std::filesystem::path& path);  // none when it is named otherwise

// The steps of which `folder` has a directory, valid or not, ascending. None when the folder is missing.
std::vector<uint64_t> list_steps(const std::filesystem::path& folder);

// Called with the reason for each checkpoint that was passed over, newest first.
using OnInvalid = std::function<void(const std::string& reason)>;

// The newest checkpoint that is whole; none when there is none.
std::optional<Checkpoint> find_newest_valid(const std::filesystem::path& folder, const OnInvalid& on_invalid,
                                            Parts parts = Parts::kAll);

struct Retention {
  size_t keep = 3;        // the last so many; at least 1
  bool keep_best = true;  // and the one with the lowest validation loss
};

// Removes, after a save of step `newest`, what `retention` does not keep. Directories of later steps are left alone and
// not counted: a run is at `newest` although they exist only because they were passed over as invalid, and to count
// them could remove the last whole ones. Those with foreign files stay. Returns the steps that were removed.
std::vector<uint64_t> remove_old(const std::filesystem::path& folder, uint64_t newest, const Retention& retention);

}  // namespace quern::checkpoint
