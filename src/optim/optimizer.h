// AdamW over the whole model with clipping by the global norm.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "core/aligned_buffer.h"
#include "kernels/adamw.h"
#include "nn/parameters.h"

namespace quern {

struct OptimizerOptions {
  float beta1 = 0.9f;
  float beta2 = 0.95f;
  float epsilon = 1e-8f;
  float weight_decay = 0.1f;  // of matrices only
  float clip = 1.0f;          // largest norm of the whole gradient; 0 for no limit
};

struct UpdateReport {
  double gradient_norm = 0;  // before clipping
  bool finite = true;        // false: the gradient was not finite and nothing was changed
};

// Sums of squares: of what an update added to weights, and of the weights before it.
struct Change {
  double update = 0, weights = 0;
};

class Optimizer {
 public:
  // `layout` must outlive the optimizer.
  Optimizer(const ParameterLayout& layout, const OptimizerOptions& options);

  // Decides about an update from the sum of squares of the gradient: how much it is clipped, and whether there is one
  // at all (not for a gradient that is not finite). `update` counts from 1, and counts updates that were made: the bias
  // corrections undo that the moments began at zero, and a step without an update does not move them.
  UpdateReport begin(double squared_norm, double rate, uint64_t update);
  // Then, for each segment of the layout once, by any thread: the update of its weights. Allocates nothing.
  void update(size_t segment, std::span<float> weights, std::span<const float> gradient);

  // The same update, to the bit, and how large it was.
  Change update_and_measure(size_t segment, std::span<float> weights, std::span<const float> gradient);

  std::span<float> m() { return m_.span(); }
  std::span<float> v() { return v_.span(); }

 private:
  kernels::AdamW options_of(const Segment& segment) const;

  OptimizerOptions options_;
  const ParameterLayout* layout_;
  kernels::AdamW adamw_;
  AlignedBuffer<float> m_, v_;
};

}  // namespace quern
