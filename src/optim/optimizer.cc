#include "optim/optimizer.h"

#include <algorithm>
#include <cmath>

#include "kernels/adamw.h"
#include "kernels/vector_ops.h"

namespace quern {

std::vector<Segment> cut_into_segments(const ParameterLayout& layout) {
  std::vector<Segment> segments;
  for (const TensorInfo& tensor : layout.tensors()) {
    for (size_t at = 0; at < tensor.size; at += kSegmentFloats) {
      segments.push_back({tensor.offset + at, std::min(kSegmentFloats, tensor.size - at), tensor.decay});
    }
  }
  return segments;
}

Optimizer::Optimizer(const ParameterLayout& layout, const OptimizerOptions& options)
    : options_(options),
      segments_(cut_into_segments(layout)),
      m_(layout.size(), Fill::kZero),
      v_(layout.size(), Fill::kZero) {}

UpdateReport Optimizer::update(std::span<float> weights, std::span<const float> gradient, double rate, uint64_t step) {
  double squares = 0;
  for (const Segment& s : segments_) squares += kernels::squared_norm(gradient.data() + s.offset, s.size);
  const double norm = std::sqrt(squares);
  if (!std::isfinite(norm)) return {norm, false};

  kernels::AdamW adamw{.rate = static_cast<float>(rate),
                       .beta1 = options_.beta1,
                       .beta2 = options_.beta2,
                       .epsilon = options_.epsilon,
                       .step = static_cast<int64_t>(step)};
  if (options_.clip > 0 && norm > options_.clip) adamw.gradient_scale = static_cast<float>(options_.clip / norm);
  for (const Segment& s : segments_) {
    adamw.weight_decay = s.decay ? options_.weight_decay : 0.0f;
    kernels::adamw(adamw, weights.data() + s.offset, gradient.data() + s.offset, m_.data() + s.offset,
                   v_.data() + s.offset, s.size);
  }
  return {norm, true};
}

}  // namespace quern
