#include "nn/models/language_model.h"

#include "nn/models/transformer.h"

namespace quern::nn {

Declaration declare(const ModelConfig& config) { return Transformer::declare(config); }

std::unique_ptr<LanguageModel> make_language_model(const ModelConfig& config, bool packed) {
  return std::make_unique<Transformer>(config, packed);
}

}  // namespace quern::nn
