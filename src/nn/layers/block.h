// One transformer block: attention and feed-forward, each preceded by a norm and added to the residual stream.
#pragma once

#include "core/philox.h"
#include "nn/pass.h"
#include "nn/weights.h"
#include "quern/profile.h"

namespace quern {

// Dropout of x (rows, C) into `out`: this member's part. The identity at rate 0. `out` may alias `x`.
void apply_dropout(const Pass& pass, Purpose purpose, size_t layer, const float* x, float* out);

// What a block's forward pass does at its ends.
struct BlockEnds {
  // Whether work.delta has yet to be added to the residual stream. False if the stream is already complete: after the
  // embedding, or when it was saved.
  bool add_delta = true;
  bool output = true;  // leave the feed-forward output in work.delta; false where only activations are needed
  bool again = false;  // recomputed for backward rather than for the loss: profiles distinguish the two
};

// The members synchronize before each of these functions returns.
//
// Takes the residual stream from work.stream (and work.delta) through the block, via work.entry(layer). Afterwards the
// stream is work.stream + work.delta.
void block_forward(const Pass& pass, const BlockWeights& weights, size_t layer, const BlockEnds& ends);

// Takes work.dx from the gradient of the block's output to that of its input; adds weight gradients in turn. Overwrites
// everything in `work` that forward used, except saved tensors.
void block_backward(const Pass& pass, const BlockWeights& weights, size_t layer);

// How a profile labels a call.
struct TimedAs {
  const Region& region;
  int32_t layer = Timed::kNoLayer;
};

// work.inner = norm(sum) with sum = x + work.delta, or `sum` as given if x is null: this member's rows. `sum` may alias
// x.
void norm_forward(const Pass& pass, const TimedAs& as, const Norm& norm, const float* x, float* sum,
                  const NormActivations& saved);

// work.dx += the gradient through a norm whose output gradient is work.dinner; weight gradients in turn.
void norm_backward(const Pass& pass, const TimedAs& as, const Norm& norm, const NormSlots& slots,
                   const NormActivations& saved);

}  // namespace quern
