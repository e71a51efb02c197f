// One transformer block: attention and feed-forward, each behind a norm and added to the residual stream.
#pragma once

#include "core/philox.h"
#include "nn/pass.h"
#include "nn/weights.h"

namespace quern {

// x (rows, C) -> its dropped-out self: this member's part of it. The identity at rate 0. `out` may be `x`.
void apply_dropout(const Pass& pass, Purpose purpose, size_t layer, const float* x, float* out);

// The members meet before each of these returns.
//
// `below` is the residual stream after the block below, without what that block's feed-forward adds, which is in
// work.delta; null for the first block, whose activations.x is already filled. Leaves its own addition in work.delta;
// the stream itself is then activations.middle + work.delta.
void block_forward(const Pass& pass, const BlockWeights& weights, const BlockActivations& activations, size_t layer,
                   const float* below);

// Takes work.dx from the gradient of the block's output to that of its input; adds weight gradients in turn.
void block_backward(const Pass& pass, const BlockWeights& weights, const BlockActivations& activations, size_t layer);

// out = norm(x + work.delta), sum = x + work.delta; without x, out = norm(sum). This member's rows.
void norm_forward(const Pass& pass, const Norm& norm, const float* x, float* sum, const NormStats& stats, float* out);

// work.dx += the gradient through a norm whose output has the gradient work.dinner; weight gradients in turn.
void norm_backward(const Pass& pass, const Norm& norm, const NormSlots& slots, const float* x, const NormStats& stats);

}  // namespace quern
