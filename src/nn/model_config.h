// The sizes of a model.
#pragma once

#include <cstddef>

#include "kernels/types.h"

namespace quern {

struct ModelConfig {
  size_t layers = 4;
  size_t heads = 4;
  size_t width = 128;       // C: features of a position; a multiple of heads
  size_t context = 128;     // T: positions the model can see
  size_t vocabulary = 256;  // V: token ids are 0 ... V - 1
  float dropout = 0.0f;     // in [0, 1): of embeddings, attention probabilities and what blocks add to the residual
  // How activations are kept for backward, and matrices for products. Arithmetic, the weights that the optimizer
  // changes, norms, biases and embedded rows are fp32.
  kernels::DType storage = kernels::DType::kF32;

  size_t head_dim() const { return width / heads; }
  bool operator==(const ModelConfig&) const = default;
};

// Throws Error that names the field, what is expected and what was found, when no model can have these sizes.
void check(const ModelConfig& config);

// Multiply-adds of the forward pass count twice, backward as twice forward: 6 x (parameters in matrix products, output
// projection included) + 6 x layers x width x T for causal attention, of which only the half that is computed counts.
double training_flops_per_token(const ModelConfig& config, size_t T);

}  // namespace quern
