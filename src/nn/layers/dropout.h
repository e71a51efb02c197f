// Dropout between layers.
#pragma once

#include <cstddef>
#include <optional>

#include "core/philox.h"
#include "kernels/dropout.h"
#include "nn/pass.h"

namespace quern::nn {

// The mask of a sequence of the pass: a function of (seed, step, sequence, purpose, block), so recomputing draws the
// same one.
kernels::Dropout dropout_of(const Pass& pass, Purpose purpose, size_t block, size_t sequence);

// Which mask to apply.
struct DropoutSite {
  Purpose purpose;
  size_t block = 0;
  std::optional<float> rate = {};  // of its own; otherwise that of the pass
};

// Dropout of x (rows, width) into `out`: this member's part, which is not that of other operations, so the members must
// synchronize before and after. The identity at rate 0. `out` may alias `x`.
void apply_dropout(const Pass& pass, const DropoutSite& site, size_t width, const float* x, float* out);

// Dropout of work.delta (rows, width), the output of a branch, after which the members synchronize.
void drop_branch(const Pass& pass, const DropoutSite& site, size_t width);

// The gradient of a branch's output: work.dx, through the branch's dropout.
const float* branch_gradient(const Pass& pass, const DropoutSite& site, size_t width);

}  // namespace quern::nn
