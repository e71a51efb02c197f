// The context shared by all operations of a pass over a micro-batch.
#pragma once

#include <string>
#include <string_view>

#include "core/team.h"
#include "nn/gradient.h"
#include "nn/key_value_cache.h"
#include "nn/micro_batch.h"
#include "nn/watch.h"
#include "nn/weights.h"
#include "nn/workspace.h"

namespace quern::nn {

// A pass is computed by all members of a team, which call the same functions in the same order. Each computes its part
// of an operation's output. They synchronize before an operation reads what others wrote, and before one overwrites
// what others may still read. Kernels do not depend on how outputs are split, so the result is bit-identical for any
// team size.
struct Pass {
  const Weights& weights;
  const MicroBatch& batch;
  Workspace& work;
  const Member& member;
  float dropout = 0;               // the rate; 0 when not training
  Gradient* gradient = nullptr;    // null without backward
  Watch* watch = nullptr;          // only for a team of one
  KeyValueCache* cache = nullptr;  // where attention finds earlier positions; only without backward
  bool again = false;              // recomputed for backward rather than for the loss: profiles distinguish the two

  size_t rows() const { return batch.sequences * batch.T; }
  std::span<float> gemm_scratch() const { return work.scratch(member).gemm; }
  const Parameter& parameter(ParameterId id) const { return weights.table()[id]; }

  // Where to write a tensor that only backward reads: nowhere if there is no backward, unless forward must continue
  // from the values rounded to 16 bits.
  SavedTensor to_save(const SavedTensor& saved) const {
    return gradient != nullptr || saved.type != kernels::DType::kF32 ? saved : SavedTensor{};
  }

  void show(std::string_view name, const SavedTensor& values, size_t count) const {
    if (watch != nullptr && !again) watch->saw(name, values, count, batch.first_sequence);
  }
  void show(std::string_view name, float* values, size_t count) const {
    show(name, SavedTensor{values, kernels::DType::kF32}, count);
  }
  void show_gradient(ParameterId id) const {
    if (watch == nullptr) return;
    show("gradient of " + parameter(id).name, gradient->at(id, batch.turn), parameter(id).size);
  }
};

}  // namespace quern::nn
