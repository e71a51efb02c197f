// Repeats a step recorded as an incident.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "diagnose/incident.h"

namespace quern::train {

struct SequenceLoss {
  uint64_t sequence = 0;  // counted from 0
  double loss = 0;        // mean over its targets that count
};

struct RerunStep {
  Incident found;                         // the outcome of the repeated step
  bool same = false;                      // loss, gradient norm and gradient hash equal the recorded ones
  std::vector<SequenceLoss> losses = {};  // of all sequences, NaN first, then in decreasing order
  StepCut cut;                            // of the repeated step
};

// The result does not depend on the number of threads. Changes nothing on disk.
RerunStep rerun_step(const RecordedIncident& recorded, size_t threads);

}  // namespace quern::train
