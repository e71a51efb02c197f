// The angles of rotary position embedding.
#pragma once

#include <cstddef>

#include "core/aligned_buffer.h"
#include "nn/declaration.h"
#include "nn/layers/kinds.h"

namespace quern::nn {

// Cosines and sines as kernels/rotary.h reads them: a row of head_dim floats per position. Computed in double precision
// and rounded once. All blocks share one table.
class RotaryTable {
 public:
  // head_dim must be even. Declares the memory; compute() allocates and fills it.
  RotaryTable(Declaration& model, size_t positions, size_t head_dim, const RotaryConfig& config);

  void compute();
  const float* data() const { return values_.data(); }

 private:
  size_t positions_, head_dim_;
  RotaryConfig config_;
  AlignedBuffer<float> values_;
};

// By how much pair j of a head is rotated from one position to the next, in radians.
double rotary_frequency(const RotaryConfig& config, size_t head_dim, size_t j);

}  // namespace quern::nn
