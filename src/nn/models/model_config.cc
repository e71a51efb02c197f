#include "nn/models/model_config.h"

#include <cmath>

#include "core/error.h"
#include "kernels/attention.h"

namespace quern::nn {
namespace {

void check_range(const char* field, size_t value, size_t max) {
  if (value < 1 || value > max) throw Error("[model] {}: expected 1 to {}, found {}", field, max, value);
}

}  // namespace

void check(const ModelConfig& config) {
  check_range("layers", config.layers, kMaxLayers);
  check_range("width", config.width, kMaxWidth);
  check_range("heads", config.heads, config.width);
  check_range("context", config.context, kMaxContext);
  check_range("vocabulary", config.vocabulary, kMaxVocabulary);
  if (config.width % config.heads != 0) {
    throw Error("[model] width: expected a multiple of heads ({}), found {}", config.heads, config.width);
  }
  check_range("width / heads", config.head_dim(), kernels::kMaxHeadDim);
  if (!(config.dropout >= 0.0f && config.dropout < 1.0f)) {
    throw Error("[model] dropout: expected 0 or more and below 1, found {}", config.dropout);
  }
  if (config.positions == Positions::kRotary && config.head_dim() % 2 != 0) {
    throw Error("[model] width / heads: expected an even number for rotary positions, found {}", config.head_dim());
  }
  if (!(config.embedding_deviation > 0.0) || std::isinf(config.embedding_deviation)) {
    throw Error("[model] embedding_deviation: expected more than 0, found {}", config.embedding_deviation);
  }
  if (!(config.logit_cap >= 0.0f) || std::isinf(config.logit_cap)) {
    throw Error("[model] logit_cap: expected 0 or more, found {}", config.logit_cap);
  }
}

}  // namespace quern::nn
