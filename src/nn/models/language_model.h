// A model of text: tokens in, the logits of the next token out.
#pragma once

#include <memory>

#include "nn/model.h"
#include "nn/models/model_config.h"

namespace quern::nn {

class LanguageModel : public Model {
 public:
  const ModelConfig& config() const { return config_; }

  // Writes the logits of every position, without dropout, to `out` (sequences, T, V). Targets are not read.
  virtual void logits(const MicroBatch& batch, float* out, Workspace& work, const Member& member = {}) const = 0;

  // Continues one sequence: takes the batch's positions through the model, adds their keys and values to the cache, and
  // writes the logits of the last position to work.logits (V) if `logits` is true. Earlier positions come from the
  // cache. Bit-identical to logits() over the entire sequence.
  virtual void decode(const MicroBatch& batch, KeyValueCache& cache, bool logits, Workspace& work,
                      const Member& member = {}) const = 0;

 protected:
  LanguageModel(const ModelConfig& config, Declaration declaration, Packing packing)
      : Model(std::move(declaration), packing), config_(config) {}

 private:
  ModelConfig config_;
};

// What the model of this config consists of. Throws Error if the config is not valid.
Declaration declare(const ModelConfig& config);

std::unique_ptr<LanguageModel> make_language_model(const ModelConfig& config, Packing packing);

}  // namespace quern::nn
