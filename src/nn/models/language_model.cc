#include "nn/models/language_model.h"

#include "nn/models/transformer.h"

namespace quern::nn {

Declaration declare(const ModelConfig& config) { return Transformer::declare(config); }

std::unique_ptr<LanguageModel> make_language_model(const ModelConfig& config, Packing packing) {
  return std::make_unique<Transformer>(config, packing);
}

}  // namespace quern::nn
