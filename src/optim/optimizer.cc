#include "optim/optimizer.h"

#include <cmath>

namespace quern {

Optimizer::Optimizer(const ParameterLayout& layout, const OptimizerOptions& options)
    : options_(options), layout_(&layout), m_(layout.size(), Fill::kZero), v_(layout.size(), Fill::kZero) {}

UpdateReport Optimizer::begin(double squared_norm, double rate, uint64_t step, double loss_scale) {
  const double norm = std::sqrt(squared_norm) / loss_scale;
  if (!std::isfinite(norm)) return {norm, false};
  adamw_ = {.rate = static_cast<float>(rate),
            .beta1 = options_.beta1,
            .beta2 = options_.beta2,
            .epsilon = options_.epsilon,
            .step = static_cast<int64_t>(step)};
  const bool clips = options_.clip > 0 && norm > options_.clip;
  adamw_.gradient_scale = static_cast<float>((clips ? options_.clip / norm : 1.0) / loss_scale);
  return {norm, true};
}

void Optimizer::update(size_t segment, std::span<float> weights, std::span<const float> gradient) {
  const Segment& s = layout_->segments()[segment];
  kernels::AdamW adamw = adamw_;
  adamw.weight_decay = s.decay ? options_.weight_decay : 0.0f;
  kernels::adamw(adamw, weights.data() + s.offset, gradient.data() + s.offset, m_.data() + s.offset,
                 v_.data() + s.offset, s.size);
}

}  // namespace quern
