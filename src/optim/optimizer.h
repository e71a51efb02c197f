// AdamW over all parameters, with clipping by the global norm.
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
  float weight_decay = 0.1f;  // for matrices only
  float clip = 1.0f;          // maximum norm of the entire gradient; 0 for no limit
};

struct UpdateReport {
  double gradient_norm = 0;  // before clipping
  bool finite = true;        // false: the gradient was not finite and nothing was changed
};

// Sums of squares: of the update, and of the weights before it.
struct Change {
  double update = 0, weights = 0;
};

class Optimizer {
 public:
  // `layout` must outlive the optimizer.
  Optimizer(const ParameterLayout& layout, const OptimizerOptions& options);

  // Decides on an update from the gradient's sum of squares: how much to clip, and whether to update at all (not if the
  // gradient is not finite). `update` counts the updates made, from 1: the bias corrections compensate for moments that
  // start at zero, and a step without an update does not change the moments.
  UpdateReport begin(double squared_norm, double rate, uint64_t update);
  // Then, once for each segment of the layout, on any thread: updates its weights. Does not allocate.
  void update(size_t segment, std::span<float> weights, std::span<const float> gradient);

  // The bit-identical update; also returns its size.
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
