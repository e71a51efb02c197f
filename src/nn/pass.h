// The context shared by all operations of a pass over a micro-batch.
#pragma once

#include "core/team.h"
#include "nn/gradient.h"
#include "nn/micro_batch.h"
#include "nn/model_config.h"
#include "nn/parameters.h"
#include "nn/watch.h"
#include "nn/workspace.h"

namespace quern {

// A pass is computed by all members of a team, which call the same functions in the same order. Each computes its part
// of an operation's output. They synchronize before an operation reads what others wrote, and before one overwrites
// what others may still read. Kernels do not depend on how outputs are split, so the result is bit-identical for any
// team size.
struct Pass {
  const ModelConfig& config;
  const ParameterLayout& layout;
  const MicroBatch& batch;
  Workspace& work;
  const Member& member;
  float dropout = 0;             // the rate; 0 when not training
  Gradient* gradient = nullptr;  // null without backward
  Watch* watch = nullptr;        // only for a team of one

  void show(Stage stage, size_t which = 0) const {
    if (watch != nullptr) watch->saw(*this, stage, which);
  }
  size_t rows() const { return batch.sequences * batch.T; }
  std::span<float> gemm_scratch() const { return work.scratch(member).gemm; }
};

}  // namespace quern
