#include "nn/models/board_config.h"

#include <cmath>

#include "core/error.h"
#include "kernels/attention.h"
#include "nn/models/model_config.h"

namespace quern::nn {
namespace {

void check_range(const char* field, size_t value, size_t min, size_t max) {
  if (value < min || value > max) throw Error("[board] {}: expected {} to {}, found {}", field, min, max, value);
}

void check_positive(const char* field, double value) {
  if (!(value > 0.0) || std::isinf(value)) throw Error("[board] {}: expected more than 0, found {}", field, value);
}

}  // namespace

void check(const BoardConfig& config) {
  check_range("squares", config.squares, 2, kMaxSquares);
  check_range("planes", config.planes, 1, kMaxPlanes);
  check_range("actions", config.actions, 1, kMaxActions);
  check_range("width", config.width, 1, kMaxWidth);
  check_range("layers", config.layers, 1, kMaxLayers);
  check_range("heads", config.heads, 1, config.width);
  if (config.width % config.heads != 0) {
    throw Error("[board] width: expected a multiple of heads ({}), found {}", config.heads, config.width);
  }
  check_range("width / heads", config.head_dim(), 1, kernels::kMaxHeadDim);
  check_range("inner_width", config.inner(), 1, kMaxInnerWidth);
  check_positive("norm_epsilon", config.norm_epsilon);
  check_positive("value_weight", config.value_weight);
}

}  // namespace quern::nn
