// The dimensions and variants of a language model.
#pragma once

#include <cstddef>

#include "kernels/types.h"
#include "nn/layers/kinds.h"

namespace quern::nn {

// The largest sizes that a model may have; the settings of a run have the same limits.
inline constexpr size_t kMaxLayers = 1024;
inline constexpr size_t kMaxWidth = 1 << 16;
inline constexpr size_t kMaxContext = 1 << 20;
inline constexpr size_t kMaxVocabulary = 1 << 24;

struct ModelConfig {
  size_t layers = 4;
  size_t heads = 4;
  size_t width = 128;       // C: embedding dimension; a multiple of heads
  size_t context = 128;     // T: maximum number of positions
  size_t vocabulary = 256;  // V: token ids are 0 ... V - 1
  float dropout = 0.0f;     // in [0, 1): of embeddings, attention probabilities and the blocks' contributions to the
                            // residual
  // Format of the activations saved for backward and of the matrices in products. Arithmetic, the weights that the
  // optimizer updates, norms, biases and embedding rows are fp32.
  kernels::DType storage = kernels::DType::kF32;

  // GPT-2's choices are the defaults.
  NormKind norm = NormKind::kLayernorm;
  Positions positions = Positions::kLearned;
  Activation activation = Activation::kGelu;
  bool qk_norm = false;           // RMS norm of each head's queries and keys
  bool zero_projections = false;  // initialize projections into the residual stream, and an untied output, with zeros
  double embedding_deviation = 0.02;  // standard deviation of the token table at the start
  bool tied_output = true;            // the output projection is the token table
  float logit_cap = 0.0f;             // soft cap: logits become cap * tanh(logit / cap); 0 for none

  size_t head_dim() const { return width / heads; }
  bool operator==(const ModelConfig&) const = default;
};

// Throws Error with the field, the expected and the actual value if the configuration is not valid.
void check(const ModelConfig& config);

}  // namespace quern::nn
