#include "nn/models/model_config.h"

#include <cmath>

#include "core/error.h"
#include "kernels/attention.h"

namespace quern::nn {
namespace {

void check_range(const char* field, size_t value, size_t max) {
  if (value < 1 || value > max) throw Error("[model] {}: expected 1 to {}, found {}", field, max, value);
}

void check_positive(const char* field, double value) {
  if (!(value > 0.0) || std::isinf(value)) throw Error("[model] {}: expected more than 0, found {}", field, value);
}

void check_rotary(const RotaryConfig& rotary) {
  check_positive("rope_base", rotary.base);
  check_positive("rope_factor", rotary.factor);
  if (rotary.scaling != RotaryScaling::kLlama3) return;
  check_positive("rope_low_frequency", rotary.low_frequency);
  if (!(rotary.high_frequency > rotary.low_frequency) || std::isinf(rotary.high_frequency)) {
    throw Error("[model] rope_high_frequency: expected more than rope_low_frequency, which is {}, found {}",
                rotary.low_frequency, rotary.high_frequency);
  }
  check_range("rope_original_context", rotary.original_context, kMaxContext);
}

// The fields that only one kind of model has.
void check_family(const ModelConfig& config) {
  if (config.is_gpt2()) {
    if (config.kv_heads != 0 || config.head_width != 0 || config.attention_bias || config.mlp_bias) {
      throw Error("[model] kv_heads, head_dim, attention_bias, mlp_bias: expected none for a GPT-2, found some");
    }
  } else if (config.norm != NormKind::kLayernorm || config.positions != Positions::kLearned ||
             config.activation != Activation::kGelu || config.qk_norm || config.logit_cap != 0.0f) {
    throw Error("[model] norm, positions, activation, qk_norm, logit_cap: expected none for a Llama, found some");
  }
  if (config.heads % config.key_heads() != 0) {
    throw Error("[model] kv_heads: expected a divisor of heads ({}), found {}", config.heads, config.kv_heads);
  }
}

void check_adapters(const AdapterConfig& adapters) {
  if (adapters.rank == 0) return;
  check_range("lora.rank", adapters.rank, kMaxAdapterRank);
  check_positive("lora.alpha", adapters.alpha);
  if (!(adapters.dropout >= 0.0 && adapters.dropout < 1.0)) {
    throw Error("[model] lora.dropout: expected 0 or more and below 1, found {}", adapters.dropout);
  }
}

}  // namespace

// Three matrices of 8/3 C have as many parameters as two of 4 C.
size_t ModelConfig::inner() const {
  if (inner_width != 0) return inner_width;
  return is_gpt2() ? 4 * width : (8 * width / 3 + 31) / 32 * 32;
}

void check(const ModelConfig& config) {
  check_range("layers", config.layers, kMaxLayers);
  check_range("width", config.width, kMaxWidth);
  check_range("heads", config.heads, config.width);
  check_range("context", config.context, kMaxContext);
  check_range("vocabulary", config.vocabulary, kMaxVocabulary);
  if (config.max_context != 0 && config.max_context < config.context) {
    throw Error("[model] max_context: expected at least context ({}), found {}", config.context, config.max_context);
  }
  check_range("max_context", config.positions_limit(), kMaxContext);
  check_range("inner_width", config.inner(), kMaxInnerWidth);
  check_family(config);
  if (config.head_width == 0 && config.width % config.heads != 0) {
    throw Error("[model] width: expected a multiple of heads ({}), found {}", config.heads, config.width);
  }
  check_range(config.head_width == 0 ? "width / heads" : "head_dim", config.head_dim(), kernels::kMaxHeadDim);
  if (!(config.dropout >= 0.0f && config.dropout < 1.0f)) {
    throw Error("[model] dropout: expected 0 or more and below 1, found {}", config.dropout);
  }
  if (config.has_rotary() && config.head_dim() % 2 != 0) {
    throw Error("[model] width / heads: expected an even number for rotary positions, found {}", config.head_dim());
  }
  check_rotary(config.rotary);
  check_adapters(config.adapters);
  check_positive("norm_epsilon", config.norm_epsilon);
  check_positive("embedding_deviation", config.embedding_deviation);
  if (!(config.logit_cap >= 0.0f) || std::isinf(config.logit_cap)) {
    throw Error("[model] logit_cap: expected 0 or more, found {}", config.logit_cap);
  }
}

}  // namespace quern::nn
