#include "optim/optimizer.h"

#include <algorithm>
#include <cmath>

#include "kernels/tensor_stats.h"
#include "kernels/vector_ops.h"

namespace quern {

Optimizer::Optimizer(const ParameterLayout& layout, const OptimizerOptions& options)
    : options_(options), layout_(&layout), m_(layout.size(), Fill::kZero), v_(layout.size(), Fill::kZero) {}

UpdateReport Optimizer::begin(double squared_norm, double rate, uint64_t update) {
  const double norm = std::sqrt(squared_norm);
  if (!std::isfinite(norm)) return {norm, false};
  adamw_ = {.rate = static_cast<float>(rate),
            .beta1 = options_.beta1,
            .beta2 = options_.beta2,
            .epsilon = options_.epsilon,
            .step = static_cast<int64_t>(update)};
  const bool clips = options_.clip > 0 && norm > options_.clip;
  adamw_.gradient_scale = static_cast<float>(clips ? options_.clip / norm : 1.0);
  return {norm, true};
}

void Optimizer::update(size_t segment, std::span<float> weights, std::span<const float> gradient) {
  const Segment& s = layout_->segments()[segment];
  kernels::adamw(options_of(s), weights.data() + s.offset, gradient.data() + s.offset, m_.data() + s.offset,
                 v_.data() + s.offset, s.size);
}

// In pieces, so that the copy of the weights stays in L1. The elements of an update are independent.
Change Optimizer::update_and_measure(size_t segment, std::span<float> weights, std::span<const float> gradient) {
  constexpr size_t kPiece = 2048;
  const Segment& s = layout_->segments()[segment];
  const kernels::AdamW adamw = options_of(s);
  float before[kPiece];
  Change change;
  for (size_t i = 0; i < s.size; i += kPiece) {
    const size_t at = s.offset + i, n = std::min(kPiece, s.size - i);
    float* p = weights.data() + at;
    std::copy_n(p, n, before);
    kernels::adamw(adamw, p, gradient.data() + at, m_.data() + at, v_.data() + at, n);
    change.weights += kernels::squared_norm(before, n);
    change.update += kernels::squared_distance(p, before, n);
  }
  return change;
}

kernels::AdamW Optimizer::options_of(const Segment& segment) const {
  kernels::AdamW adamw = adamw_;
  adamw.weight_decay = segment.decay ? options_.weight_decay : 0.0f;
  return adamw;
}

}  // namespace quern
