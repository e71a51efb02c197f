// The plan of a run: how it will be computed and how much memory that takes, determined before any allocation.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "config/model_settings.h"
#include "nn/declaration.h"
#include "nn/workspace.h"
#include "parallel/step_cut.h"

namespace quern::train {

// Memory by purpose, in bytes.
struct MemoryPlan {
  size_t program = 0;           // resident before the run allocates anything: the program and data already loaded
  size_t weights = 0;           // including constant tables of the model
  size_t packed = 0;            // copies of the weights in the order in which products read them
  size_t gradient = 0;          // shared by all workers
  size_t gradient_buffers = 1;  // that it consists of: more than one for several lanes
  size_t moments = 0;
  size_t update = 0;               // working memory of the optimizer, all threads
  size_t batches = 0;              // prefetched
  size_t exchange = 0;             // segments that arrive from other ranks
  size_t selfplay = 0;             // replay buffer, games and the networks that play them (learn/memory.h)
  nn::WorkspaceBytes worker = {};  // of the largest worker
  size_t workers = 1;
  size_t all_workers = 0;  // sum over workers

  size_t total() const {
    return program + weights + packed + gradient + moments + update + batches + exchange + selfplay + all_workers;
  }
};

inline constexpr size_t kAllLogitRows = nn::kMicroBatchTokens;  // of a regular micro-batch

// All choices that affect speed and memory but not the result.
struct Plan {
  size_t threads = 1;
  StepCut cut;
  bool packed = false;                // whether packed copies of the weights are stored
  size_t interval = 1;                // layers whose activations are in memory at once
  size_t logit_rows = kAllLogitRows;  // rows of logits computed at once
  double time = 1;                    // expected step time relative to the fastest plan
  MemoryPlan memory;

  nn::WorkspaceOptions workspace(size_t team) const;
};

// train.threads, or the number of usable cores if that is 0.
size_t thread_count(const RunConfig& config);

// Which of the processes that train together a plan is for.
struct RankOf {
  size_t rank = 0, ranks = 1;
};

// The fastest plan that follows train.recompute and, unless train.memory is 0, stays within it, given that `program`
// bytes are already in use. Error, with the smallest feasible limit, if there is no such plan.
Plan make_plan(const RunConfig& config, const nn::Declaration& model, uint64_t program = 0, const RankOf& rank = {});
// The same for the language model of this config.
Plan make_plan(const RunConfig& config, uint32_t vocabulary, uint64_t program = 0, const RankOf& rank = {});

}  // namespace quern::train
