#include "nn/layers/rotary.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace quern::nn {

// llama3: the share of the unscaled frequency rises linearly from 0 to 1 with the number of periods in the original
// context, between low_frequency and high_frequency of them.
double rotary_frequency(const RotaryConfig& config, size_t head_dim, size_t j) {
  const double frequency = std::pow(config.base, -2.0 * static_cast<double>(j) / static_cast<double>(head_dim));
  if (config.scaling == RotaryScaling::kNone) return frequency;
  if (config.scaling == RotaryScaling::kLinear) return frequency / config.factor;
  const double periods = static_cast<double>(config.original_context) * frequency / (2 * std::numbers::pi);
  const double share = (periods - config.low_frequency) / (config.high_frequency - config.low_frequency);
  const double unscaled = std::clamp(share, 0.0, 1.0);
  return frequency * ((1 - unscaled) / config.factor + unscaled);
}

RotaryTable::RotaryTable(Declaration& model, size_t positions, size_t head_dim, const RotaryConfig& config)
    : positions_(positions), head_dim_(head_dim), config_(config) {
  model.constant_bytes += positions * head_dim * sizeof(float);
}

void RotaryTable::compute() {
  values_ = AlignedBuffer<float>(positions_ * head_dim_);
  const size_t half = head_dim_ / 2;
  for (size_t j = 0; j < half; ++j) {
    const double frequency = rotary_frequency(config_, head_dim_, j);
    for (size_t position = 0; position < positions_; ++position) {
      const double angle = static_cast<double>(position) * frequency;
      float* row = values_.data() + position * head_dim_;
      row[j] = static_cast<float>(std::cos(angle));
      row[half + j] = static_cast<float>(std::sin(angle));
    }
  }
}

}  // namespace quern::nn
