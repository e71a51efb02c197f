// GPT-2: pre-norm transformer blocks on token and position embeddings, with an output projection tied to the token
// embedding. Names and layouts of its parameters are those of Hugging Face. ModelConfig can replace parts of it:
// another norm, rotary positions, another activation, ...
#pragma once

#include <memory>

#include "nn/layers/block.h"
#include "nn/layers/embedding.h"
#include "nn/layers/norm.h"
#include "nn/layers/output.h"
#include "nn/models/language_model.h"

namespace quern::nn {

class Gpt2 final : public LanguageModel {
 public:
  Gpt2(const ModelConfig& config, bool packed);

  // What the model consists of, without allocating it.
  static Declaration declare(const ModelConfig& config);

  double forward_backward(const MicroBatch& batch, const BackwardArgs& args, Workspace& work,
                          const Member& member = {}) const override;
  double loss(const MicroBatch& batch, Workspace& work, const Member& member = {}) const override;
  void logits(const MicroBatch& batch, float* out, Workspace& work, const Member& member = {}) const override;
  void decode(const MicroBatch& batch, KeyValueCache& cache, bool logits, Workspace& work,
              const Member& member = {}) const override;

 private:
  struct Layers {
    Layers(Declaration& model, const ModelConfig& config);
    Embedding embedding;
    std::shared_ptr<RotaryTable> rotary;  // null without rotary positions
    BlockStack blocks;
    Norm final_norm;
    Output output;
  };
  struct Built;
  static Built build(const ModelConfig& config);
  Gpt2(const ModelConfig& config, Built built, bool packed);

  void forward(const Pass& pass) const;
  void normalise_output(const Pass& pass) const;
  void backward(const Pass& pass) const;

  Layers layers_;
};

}  // namespace quern::nn
