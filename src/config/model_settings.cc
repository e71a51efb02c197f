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
  return {.layers = config.model.layers,
          .heads = config.model.heads,
          .width = config.model.width,
          .context = config.model.context,
          .vocabulary = vocabulary,
          .dropout = static_cast<float>(config.model.dropout),
          .storage = storage_of(config.train.precision),
          .norm = config.model.norm,
          .positions = config.model.positions,
          .activation = config.model.activation,
          .qk_norm = config.model.qk_norm,
          .zero_projections = config.model.zero_projections,
          .embedding_deviation = config.model.embedding_deviation,
          .tied_output = config.model.tied_output,
          .logit_cap = static_cast<float>(config.model.logit_cap)};
}

}  // namespace quern::train
