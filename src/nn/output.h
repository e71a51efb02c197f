// The output projection with cross entropy, some rows at a time: the logits of a whole batch exist only for those who
// ask for them.
#pragma once

#include "nn/pass.h"
#include "nn/weights.h"

namespace quern {

// Reads work.inner; writes the logits of every row into `out` (R, V).
void output_logits(const Pass& pass, const Weights& weights, float* out);

// Reads work.inner and the batch's targets; leaves the loss of every row in work.losses.
void output_forward(const Pass& pass, const Weights& weights);

// The same, and the gradient times `scale`: of work.inner into work.dinner (overwritten), of the token table in
// turn into the pass's gradient. Chunks of rows do not change the bits: a row is alone, and the sums over rows go on
// from chunk to chunk.
void output_forward_backward(const Pass& pass, const Weights& weights, float scale);

}  // namespace quern
