// Matrix products of a pass, shared by the members of a team.
#pragma once

#include <cstddef>

#include "kernels/gemm.h"
#include "nn/pass.h"

namespace quern::nn {

// Whether a sum over rows that is computed in several calls waits for its turn before and passes it on after.
struct TurnEnds {
  bool first = true, last = true;
};

// A member's part of a product. Columns of C are split first, because then no two members read or pack the same part of
// B; rows are split too if there are more members than column panels. Products of the same size are split alike, so a
// member may add one to its part of another without synchronizing.
void gemm_part(const kernels::Gemm& gemm, const Pass& pass);

// Adds a^T (rows, M) b (rows, width), in turn, to the gradient of the matrix (M, width): this member's part of it,
// passed on in as many pieces as the gradient asks for. a and b must be complete: the members have synchronized. They
// synchronize again before the next call, which overwrites work.packed.
void add_product(const Pass& pass, ParameterId matrix, const kernels::Operand& a, const kernels::Operand& b,
                 size_t rows, const TurnEnds& ends = {});

}  // namespace quern::nn
