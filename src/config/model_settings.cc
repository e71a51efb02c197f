#include "config/model_settings.h"

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
          .tied_output = config.model.tied_output,
          .logit_cap = static_cast<float>(config.model.logit_cap)};
}

}  // namespace quern::train
