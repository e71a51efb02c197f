// Repeats a step that was recorded as an incident.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "train/incident.h"

namespace quern::train {

struct SequenceLoss {
  uint64_t sequence = 0;  // counted from 0
  double loss = 0;        // mean over its tokens
};

struct RerunStep {
  Incident found;                         // as the step is now
  bool same = false;                      // loss, gradient norm and gradient hash are those that were recorded
  std::vector<SequenceLoss> losses = {};  // of all sequences, the highest first, NaN before all
  uint64_t at_once = 1;                   // sequences of a micro-batch here
};

// By this many threads; the result does not depend on how many. Changes nothing on disk.
RerunStep rerun_step(const RecordedIncident& recorded, size_t threads);

}  // namespace quern::train
