// One transformer block: attention and feed-forward, each behind a norm and added to the residual stream.
#pragma once

#include "core/philox.h"
#include "nn/micro_batch.h"
#include "nn/parameters.h"
#include "nn/weights.h"
#include "nn/workspace.h"

namespace quern {

// What every operation of a pass over a micro-batch knows.
struct Pass {
  const ModelConfig& config;
  const MicroBatch& batch;
  Workspace& work;
  float dropout;  // the rate; 0 when not training

  size_t rows() const { return batch.sequences * batch.T; }
};

// x (rows, C) -> its dropped-out self, sequence by sequence; the identity at rate 0. `out` may be `x`.
void apply_dropout(const Pass& pass, Purpose purpose, size_t layer, const float* x, float* out);

// `below` is the residual stream after the block below, without what that block's feed-forward adds, which is in
// work.delta; null for the first block, whose activations.x is already filled. Leaves its own addition in work.delta;
// the stream itself is then activations.middle + work.delta.
void block_forward(const Pass& pass, const BlockWeights& weights, const BlockActivations& activations, size_t layer,
                   const float* below);

// Takes work.dx from the gradient of the block's output to that of its input; adds weight gradients into `gradient`,
// which is laid out as the parameters are.
void block_backward(const Pass& pass, const BlockWeights& weights, const BlockActivations& activations,
                    const BlockSlots& slots, size_t layer, float* gradient);

}  // namespace quern
