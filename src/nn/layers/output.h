// The output projection with cross entropy, in chunks of rows: the logits of a complete batch are only materialized on
// request.
#pragma once

#include "nn/pass.h"
#include "nn/weights.h"

namespace quern {

// Reads work.inner; writes the logits of every row to `out` (R, V).
void output_logits(const Pass& pass, const Weights& weights, float* out);

// Reads work.inner and the batch's targets; writes the loss of every row to work.losses.
void output_forward(const Pass& pass, const Weights& weights);

// The same, plus the gradient times `scale`: that of work.inner into work.dinner (overwritten), that of the token
// table, in turn, into the pass's gradient. The chunk size does not change the result: rows are independent, and sums
// over rows continue from chunk to chunk.
void output_forward_backward(const Pass& pass, const Weights& weights, float scale);

}  // namespace quern
