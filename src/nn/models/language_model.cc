#include "nn/models/language_model.h"

#include "nn/models/gpt2.h"

namespace quern::nn {

Declaration declare(const ModelConfig& config) { return Gpt2::declare(config); }

std::unique_ptr<LanguageModel> make_language_model(const ModelConfig& config, bool packed) {
  return std::make_unique<Gpt2>(config, packed);
}

}  // namespace quern::nn
