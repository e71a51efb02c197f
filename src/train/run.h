// A run: a directory with everything that decides its result, trained until its last step, whatever interrupts it.
#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "checkpoint/checkpoint.h"
#include "nn/gpt.h"
#include "train/config.h"
#include "train/observer.h"

namespace quern::train {

struct RunResult {
  uint64_t step = 0;  // done in all
  bool finished = false;
  double loss = 0;  // of the last step done here
  std::optional<double> validation_loss = {};
  bool prepared = true;  // false: stopped while the data was prepared; nothing was written
};

// Starts a run in `folder`, which must be new, empty, or what a killed start left; other things in it are an Error and
// stay as they are. Error, before anything is written, for a config or data that cannot be trained on. Holds the run's
// lock (run_lock.h) meanwhile, as resume_run() does: Error when another process has it. `stop`, set by anyone, ends it
// after the step at hand with a checkpoint.
RunResult start_run(const RunConfig& config, const std::filesystem::path& folder, Observer& observer,
                    const std::atomic<bool>& stop);

// Goes on with the run in `folder` from its newest checkpoint that is whole, or from the beginning when there is none;
// the result is that of a run that was never interrupted. `config` is the run's own, but for settings that no result
// depends on.
RunResult resume_run(const RunConfig& config, const std::filesystem::path& folder, Observer& observer,
                     const std::atomic<bool>& stop);

// The config of the run in `folder`; Error when there is none.
RunConfig read_config(const std::filesystem::path& folder);

// References to the tensors of a buffer that is laid out as `layout`.
std::vector<checkpoint::TensorRef> tensor_refs(const ParameterLayout& layout, std::span<float> values);

}  // namespace quern::train
