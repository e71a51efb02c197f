// What a run will do and how much memory that takes, known before anything is allocated.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "nn/model_config.h"
#include "nn/workspace.h"
#include "train/config.h"
#include "train/step_cut.h"

namespace quern::train {

// Bytes by purpose.
struct MemoryPlan {
  size_t program = 0;  // resident before the run allocates anything: the program, and data that is loaded already
  size_t weights = 0;
  size_t packed = 0;    // their copies in the order that products read
  size_t gradient = 0;  // one for all workers
  size_t moments = 0;
  size_t batches = 0;          // read ahead
  WorkspaceBytes worker = {};  // of the largest worker
  size_t workers = 1;
  size_t all_workers = 0;  // of all of them

  size_t total() const { return program + weights + packed + gradient + moments + batches + all_workers; }
};

inline constexpr size_t kAllLogitRows = kMicroBatchTokens;  // of a micro-batch of ordinary size

// All choices that change speed and memory but no result.
struct Plan {
  size_t threads = 1;
  StepCut cut;
  bool packed = false;                // whether weights are kept packed
  size_t interval = 1;                // layers whose activations exist at once
  size_t logit_rows = kAllLogitRows;  // rows of logits at once
  double time = 1;                    // expected, as a multiple of the fastest plan's
  MemoryPlan memory;

  WorkspaceOptions workspace(size_t team) const;
};

// The model's part of a run's config, with the vocabulary that the data has.
ModelConfig model_config(const RunConfig& config, uint32_t vocabulary);

// train.threads, or every core that can be used when that is 0.
size_t thread_count(const RunConfig& config);

// The fastest plan that is as train.recompute says and, with `program` bytes occupied already, within train.memory
// where that is not 0. Error that names the smallest limit that can be kept when there is none.
Plan make_plan(const RunConfig& config, uint32_t vocabulary, uint64_t program = 0);

}  // namespace quern::train
