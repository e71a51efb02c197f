#include "nn/layers/rotary.h"

#include <cmath>

namespace quern::nn {

RotaryTable::RotaryTable(Declaration& model, size_t positions, size_t head_dim, double base)
    : positions_(positions), head_dim_(head_dim), base_(base) {
  model.constant_bytes += positions * head_dim * sizeof(float);
}

void RotaryTable::compute() {
  values_ = AlignedBuffer<float>(positions_ * head_dim_);
  const size_t half = head_dim_ / 2;
  for (size_t j = 0; j < half; ++j) {
    const double frequency = std::pow(base_, -2.0 * static_cast<double>(j) / static_cast<double>(head_dim_));
    for (size_t position = 0; position < positions_; ++position) {
      const double angle = static_cast<double>(position) * frequency;
      float* row = values_.data() + position * head_dim_;
      row[j] = static_cast<float>(std::cos(angle));
      row[half + j] = static_cast<float>(std::sin(angle));
    }
  }
}

}  // namespace quern::nn
