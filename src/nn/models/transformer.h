// A decoder-only transformer: token embedding, pre-norm blocks, a final norm and an output projection. Families of
// models differ in what their parts are (gpt2.h, llama.h), and not in how a batch flows through them.
#pragma once

#include <functional>
#include <memory>

#include "nn/layers/block.h"
#include "nn/layers/embedding.h"
#include "nn/layers/norm.h"
#include "nn/layers/output.h"
#include "nn/models/language_model.h"

namespace quern::nn {

struct TransformerSpec {
  EmbeddingSpec embedding;
  // Of block number `index`. The table is null without rotary positions.
  std::function<BlockSpec(size_t index, const std::shared_ptr<const RotaryTable>& rotary)> block;
  NormSpec final_norm;
};

// The spec of a config of any family; the config must be valid.
TransformerSpec transformer_spec(const ModelConfig& config);

class Transformer final : public LanguageModel {
 public:
  Transformer(const ModelConfig& config, Packing packing);

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
    Layers(Declaration& model, const ModelConfig& config, const TransformerSpec& spec);
    Embedding embedding;
    std::shared_ptr<RotaryTable> rotary;  // null without rotary positions
    BlockStack blocks;
    Norm final_norm;
    Output output;
  };
  struct Built;
  static Built build(const ModelConfig& config);
  Transformer(const ModelConfig& config, Built built, Packing packing);

  void forward(const Pass& pass) const;
  void normalise_output(const Pass& pass) const;
  void backward(const Pass& pass) const;

  Layers layers_;
};

}  // namespace quern::nn
