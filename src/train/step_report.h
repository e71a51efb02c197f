// The result of a step.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "core/team.h"
#include "nn/declaration.h"
#include "train/memory_use.h"

namespace quern::train {

// Why a step is an incident. Its update is skipped, and the state needed to repeat it is saved.
enum class Trouble : uint8_t {
  kNone,
  kLoss,      // the loss is not finite
  kGradient,  // the gradient is not finite
  kSpike,     // the loss is too far above the previous ones
};

struct StepReport {
  uint64_t step = 0;                                      // counted from 1
  double loss = 0;                                        // mean over the step's targets, before the update
  std::array<double, nn::kMaxLossParts> loss_parts = {};  // that add up to it, as Model::loss_parts() names them
  double rate = 0;
  double gradient_norm = 0;          // before clipping
  bool finite = true;                // the gradient
  Trouble trouble = Trouble::kNone;  // if not kNone, the update was skipped
  double spike_z = 0;                // standard deviations of the loss above the mean of the previous ones
  uint64_t tokens = 0;               // in this step; of a board, squares
  uint64_t targets = 0;              // of them, those that count for the loss
  double seconds = 0;
  std::optional<MemoryUse> memory = {};  // after the step; only for logged steps
  // How the workers spent these seconds.
  size_t threads = 1;
  WaitTimes waits = {};                    // sum over threads; a wait counts in the step in which it ended
  double data_wait = 0;                    // time the feeding thread waited for batches
  std::optional<double> cpu_seconds = {};  // CPU time of the process

  bool skipped() const { return !finite || trouble != Trouble::kNone; }
};

}  // namespace quern::train
