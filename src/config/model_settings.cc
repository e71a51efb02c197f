#include "config/model_settings.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "config/config_fields.h"

namespace quern::train {
namespace {

kernels::DType storage_of(Precision precision) {
  switch (precision) {
    case Precision::kFp32:
      return kernels::DType::kF32;
    case Precision::kBf16:
      return kernels::DType::kBF16;
    case Precision::kFp16:
      return kernels::DType::kF16;
  }
  return kernels::DType::kF32;
}

}  // namespace

std::string variants_text(const RunConfig& config) {
  constexpr std::array<std::string_view, 6> kSizes = {"layers", "heads", "width", "context", "vocabulary", "dropout"};
  std::string text;
  for (const Field& field : fields()) {
    if (field.table != "model" || std::ranges::find(kSizes, field.name) != kSizes.end()) continue;
    std::string value = value_text(field, config);
    if (value == value_text(field, {})) continue;
    std::erase(value, '"');
    text += fmt::format("{}{}={}", text.empty() ? "" : ", ", field.name, value);
  }
  return text;
}

nn::ModelConfig model_config(const RunConfig& config, uint32_t vocabulary) {
  return {.family = config.model.family,
          .layers = config.model.layers,
          .heads = config.model.heads,
          .width = config.model.width,
          .context = config.model.context,
          .vocabulary = vocabulary,
          .dropout = static_cast<float>(config.model.dropout),
          .storage = storage_of(config.train.precision),
          .max_context = config.model.max_context,
          .inner_width = config.model.inner_width,
          .norm_epsilon = config.model.norm_epsilon,
          .embedding_deviation = config.model.embedding_deviation,
          .tied_output = config.model.tied_output,
          .zero_projections = config.model.zero_projections,
          .rotary = {.base = config.model.rope_base,
                     .scaling = config.model.rope_scaling,
                     .factor = config.model.rope_factor,
                     .low_frequency = config.model.rope_low_frequency,
                     .high_frequency = config.model.rope_high_frequency,
                     .original_context = config.model.rope_original_context},
          .kv_heads = config.model.kv_heads,
          .head_width = config.model.head_dim,
          .attention_bias = config.model.attention_bias,
          .mlp_bias = config.model.mlp_bias,
          .norm = config.model.norm,
          .positions = config.model.positions,
          .activation = config.model.activation,
          .qk_norm = config.model.qk_norm,
          .logit_cap = static_cast<float>(config.model.logit_cap),
          .adapters = {.rank = config.lora.rank,
                       .alpha = config.lora.alpha,
                       .dropout = config.lora.dropout,
                       .rank_stabilized = config.lora.rslora,
                       .targets = config.lora.targets},
          .frozen = config.train.freeze};
}

void set_model(RunConfig& config, const nn::ModelConfig& model, double dropout) {
  config.model = {.layers = model.layers,
                  .heads = model.heads,
                  .width = model.width,
                  .context = model.context,
                  .vocabulary = model.vocabulary,
                  .dropout = dropout,
                  .family = model.family,
                  .max_context = model.max_context,
                  .inner_width = model.inner_width,
                  .kv_heads = model.kv_heads,
                  .head_dim = model.head_width,
                  .attention_bias = model.attention_bias,
                  .mlp_bias = model.mlp_bias,
                  .norm_epsilon = model.norm_epsilon,
                  .rope_base = model.rotary.base,
                  .rope_scaling = model.rotary.scaling,
                  .rope_factor = model.rotary.factor,
                  .rope_low_frequency = model.rotary.low_frequency,
                  .rope_high_frequency = model.rotary.high_frequency,
                  .rope_original_context = model.rotary.original_context,
                  .norm = model.norm,
                  .positions = model.positions,
                  .activation = model.activation,
                  .qk_norm = model.qk_norm,
                  .zero_projections = model.zero_projections,
                  .embedding_deviation = model.embedding_deviation,
                  .tied_output = model.tied_output,
                  .logit_cap = static_cast<double>(model.logit_cap)};
}

}  // namespace quern::train
