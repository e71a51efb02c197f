// AdamW over the whole model with clipping by the global norm.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "core/aligned_buffer.h"
#include "nn/parameters.h"

namespace quern {

struct OptimizerOptions {
  float beta1 = 0.9f;
  float beta2 = 0.95f;
  float epsilon = 1e-8f;
  float weight_decay = 0.1f;  // of matrices only
  float clip = 1.0f;          // largest norm of the whole gradient; 0 for no limit
};

// The parameters cut into pieces that fit a core's cache: the unit of the norm's sum and of the update. The cut belongs
// to the layout alone, so the norm has one value whoever computes the pieces.
struct Segment {
  size_t offset, size;
  bool decay;
};
inline constexpr size_t kSegmentFloats = size_t{64} << 10;
std::vector<Segment> cut_into_segments(const ParameterLayout& layout);

struct UpdateReport {
  double gradient_norm = 0;  // before clipping
  bool finite = true;        // false: the gradient was not finite and nothing was changed
};

class Optimizer {
 public:
  Optimizer(const ParameterLayout& layout, const OptimizerOptions& options);

  // One update of `weights` from `gradient`, both laid out as `layout`; `step` counts from 1. A gradient that is not
  // finite changes nothing. Allocates nothing.
  UpdateReport update(std::span<float> weights, std::span<const float> gradient, double rate, uint64_t step);

  std::span<float> m() { return m_.span(); }
  std::span<float> v() { return v_.span(); }

 private:
  OptimizerOptions options_;
  std::vector<Segment> segments_;
  AlignedBuffer<float> m_, v_;
};

}  // namespace quern
