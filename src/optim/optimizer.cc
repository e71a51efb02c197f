#include "optim/optimizer.h"

#include <algorithm>
#include <cmath>

#include "kernels/tensor_stats.h"
#include "kernels/vector_ops.h"
#include "optim/adamw.h"

namespace quern {

Optimizer::Optimizer(const nn::ParameterTable& table, const OptimizerOptions& options,
                     std::span<const char* const> states)
    : options_(options), table_(&table) {
  for (const char* name : states) {
    states_.push_back({name, AlignedBuffer<float>(table.trainable_size(), Fill::kZero)});
  }
}

void Optimizer::reset() {
  for (OptimizerState& state : states_) std::fill_n(state.values.data(), table_->trainable_size(), 0.0f);
}

UpdateReport Optimizer::begin(double squared_norm, double rate, uint64_t update) {
  const double norm = std::sqrt(squared_norm);
  if (!std::isfinite(norm)) return {norm, false};
  const bool clips = options_.clip > 0 && norm > options_.clip;
  prepare({.rate = static_cast<float>(rate),
           .gradient_scale = static_cast<float>(clips ? options_.clip / norm : 1.0),
           .number = update});
  return {norm, true};
}

void Optimizer::update(size_t segment, std::span<float> weights, std::span<const float> gradient) {
  const nn::Segment& s = table_->segments()[segment];
  apply(s, s.offset, s.size, weights.data() + s.offset, gradient.data() + s.offset);
}

// In pieces, so that the copy of the weights stays in L1.
Change Optimizer::update_and_measure(size_t segment, std::span<float> weights, std::span<const float> gradient) {
  constexpr size_t kPiece = 2048;
  const nn::Segment& s = table_->segments()[segment];
  float before[kPiece];
  Change change;
  for (size_t i = 0; i < s.size; i += kPiece) {
    const size_t at = s.offset + i, n = std::min(kPiece, s.size - i);
    float* p = weights.data() + at;
    std::copy_n(p, n, before);
    apply(s, at, n, p, gradient.data() + at);
    change.weights += kernels::squared_norm(before, n);
    change.update += kernels::squared_distance(p, before, n);
  }
  return change;
}

std::unique_ptr<Optimizer> make_optimizer(const nn::ParameterTable& table, const OptimizerOptions& options) {
  return std::make_unique<AdamW>(table, options);
}

size_t optimizer_bytes(const nn::ParameterTable& table) {
  return AdamW::kStates.size() * table.trainable_size() * sizeof(float);
}

}  // namespace quern
