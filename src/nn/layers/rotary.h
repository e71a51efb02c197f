// The angles of rotary position embedding.
#pragma once

#include <cstddef>

#include "core/aligned_buffer.h"
#include "nn/declaration.h"

namespace quern::nn {

// Cosines and sines as kernels/rotary.h reads them: a row of head_dim floats per position. Pair j of a head is rotated
// by position * base^(-2j / head_dim). Computed in double precision and rounded once. All blocks share one table.
class RotaryTable {
 public:
  // head_dim must be even. Declares the memory; compute() allocates and fills it.
  RotaryTable(Declaration& model, size_t positions, size_t head_dim, double base = 10000.0);

  void compute();
  const float* data() const { return values_.data(); }

 private:
  size_t positions_, head_dim_;
  double base_;
  AlignedBuffer<float> values_;
};

}  // namespace quern::nn
