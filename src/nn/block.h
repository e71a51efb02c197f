// One transformer block: attention and feed-forward, each behind a norm and added to the residual stream.
#pragma once

#include "core/philox.h"
#include "nn/pass.h"
#include "nn/weights.h"
#include "quern/profile.h"

namespace quern {

// x (rows, C) -> its dropped-out self: this member's part of it. The identity at rate 0. `out` may be `x`.
void apply_dropout(const Pass& pass, Purpose purpose, size_t layer, const float* x, float* out);

// What a block's forward does besides its middle part.
struct BlockEnds {
  // Whether work.delta is still to be added to the residual stream. Not for a stream that is whole: that of the
  // embedding, or one that was kept.
  bool add_delta = true;
  bool output = true;  // leave in work.delta what feed-forward adds; not where only activations are wanted
  bool again = false;  // for backward, and not for the loss: a profile tells them apart
};

// The members meet before each of these returns.
//
// Takes the residual stream from work.stream (and work.delta) through the block, by way of work.entry(layer): the
// stream is then work.stream + work.delta.
void block_forward(const Pass& pass, const BlockWeights& weights, size_t layer, const BlockEnds& ends);

// Takes work.dx from the gradient of the block's output to that of its input; adds weight gradients in turn. Leaves
// nothing else of work that forward used, but for what is kept.
void block_backward(const Pass& pass, const BlockWeights& weights, size_t layer);

// How a profile names a call.
struct TimedAs {
  const Region& region;
  int32_t layer = Timed::kNoLayer;
};

// work.inner = norm(sum) with sum = x + work.delta, or sum itself where x is null: this member's rows. `sum` may be x.
void norm_forward(const Pass& pass, const TimedAs& as, const Norm& norm, const float* x, float* sum,
                  const NormActivations& saved);

// work.dx += the gradient through a norm whose output has the gradient work.dinner; weight gradients in turn.
void norm_backward(const Pass& pass, const TimedAs& as, const Norm& norm, const NormSlots& slots,
                   const NormActivations& saved);

}  // namespace quern
