// The dimensions and variants of a board network.
#pragma once

#include <cstddef>

#include "kernels/types.h"
#include "nn/layers/kinds.h"

namespace quern::nn {

// The largest sizes that a board may have.
inline constexpr size_t kMaxSquares = 1 << 12;
inline constexpr size_t kMaxPlanes = 1 << 12;
inline constexpr size_t kMaxActions = 1 << 16;

struct BoardConfig {
  size_t squares = 0;  // of the board, which are the positions of the transformer: at least 2
  size_t planes = 0;   // numbers that describe a square
  size_t actions = 0;
  size_t width = 64;
  size_t layers = 4;
  size_t heads = 2;
  size_t inner_width = 0;  // of the feed-forward layers; 0 for 4 times the width
  NormKind norm = NormKind::kRmsnorm;
  Activation activation = Activation::kRelu2;
  double norm_epsilon = 1e-5;
  double value_weight = 1.0;  // of the value's loss in the sum
  // Format of the activations saved for backward and of the matrices in products, as in ModelConfig.
  kernels::DType storage = kernels::DType::kF32;

  size_t inner() const { return inner_width == 0 ? 4 * width : inner_width; }
  size_t head_dim() const { return width / heads; }
  size_t actions_per_square() const { return (actions + squares - 1) / squares; }
  bool operator==(const BoardConfig&) const = default;
};

// Throws Error with the field, the expected and the actual value if the configuration is not valid.
void check(const BoardConfig& config);

}  // namespace quern::nn
