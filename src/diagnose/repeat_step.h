// Repeats the passes of a step to find the first value that is not finite.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "diagnose/examine.h"
#include "train/step_context.h"

namespace quern::train {

// The token ids of a step: (sequences, T) each.
struct StepTokens {
  std::vector<int32_t> inputs, targets;
  std::vector<int32_t> positions = {};  // of sequences with several documents (nn/documents.h); empty without

  uint64_t counted_targets() const;  // that are not kernels::kIgnoreTarget
  // The loss of a sequence of T tokens: the mean over its targets that count, of their sum.
  double mean_loss(size_t sequence, size_t T, double sum) const;
};

// The tokens of the step that starts in the state `at`.
StepTokens read_step(const StepContext& step, const RunState& at);

// The first values of a step that are not finite.
struct Findings {
  std::optional<BadValue> weight;  // before the step
  std::optional<BadValue> pass;    // forward, then backward, sequence by sequence
};

// Repeats the passes of the step that starts in the state `at` with the current weights, sequence by sequence, until a
// value is not finite. Runs on the calling thread in the scratch memory of `step` and overwrites its gradient. The
// result does not depend on the number of threads.
Findings examine(const StepContext& step, const StepTokens& tokens, const RunState& at);

}  // namespace quern::train
