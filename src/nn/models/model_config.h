// The dimensions and variants of a language model.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "kernels/types.h"
#include "nn/adapter_config.h"
#include "nn/layers/kinds.h"

namespace quern::nn {

// The largest sizes that a model may have; the settings of a run have the same limits.
inline constexpr size_t kMaxLayers = 1024;
inline constexpr size_t kMaxWidth = 1 << 16;
inline constexpr size_t kMaxInnerWidth = 1 << 18;
inline constexpr size_t kMaxContext = 1 << 20;
inline constexpr size_t kMaxVocabulary = 1 << 24;

struct ModelConfig {
  Family family = Family::kGpt2;
  size_t layers = 4;
  size_t heads = 4;
  size_t width = 128;       // C: embedding dimension
  size_t context = 128;     // T: number of positions in training
  size_t vocabulary = 256;  // V: token ids are 0 ... V - 1
  float dropout = 0.0f;     // in [0, 1): of embeddings, attention probabilities and the blocks' contributions to the
                            // residual
  // Format of the activations saved for backward and of the matrices in products. Arithmetic, the weights that the
  // optimizer updates, norms, biases and embedding rows are fp32.
  kernels::DType storage = kernels::DType::kF32;

  size_t max_context = 0;  // maximum number of positions, at least `context`; 0 for the same
  size_t inner_width = 0;  // of the feed-forward layers; 0 for 4 C, or for Llama 8/3 C rounded up to a multiple of 32
  double norm_epsilon = 1e-5;
  double embedding_deviation = 0.02;  // standard deviation of the token table at the start
  bool tied_output = true;            // the output projection is the token table
  bool zero_projections = false;      // initialize projections into the residual stream, and an untied output, with
                                      // zeros
  RotaryConfig rotary = {};           // of models with rotary positions

  // Of Llama and its relatives.
  size_t kv_heads = 0;          // heads of keys and values, a divisor of `heads`; 0 for as many
  size_t head_width = 0;        // of a head; 0 for C / heads
  bool attention_bias = false;  // biases of queries, keys, values and output; of Qwen2, all but the output have one
  bool mlp_bias = false;        // biases of the feed-forward layers

  // Variants of GPT-2; its own choices are the defaults.
  NormKind norm = NormKind::kLayernorm;
  Positions positions = Positions::kLearned;
  Activation activation = Activation::kGelu;
  bool qk_norm = false;    // RMS norm of each head's queries and keys
  float logit_cap = 0.0f;  // soft cap: logits become cap * tanh(logit / cap); 0 for none

  // What is trained. With adapters, nothing but them.
  AdapterConfig adapters = {};
  std::vector<std::string> frozen = {};  // parts of names, as for has_part(), of parameters that are not trained

  bool is_gpt2() const { return family == Family::kGpt2; }
  bool has_rotary() const { return !is_gpt2() || positions == Positions::kRotary; }
  size_t head_dim() const { return head_width == 0 ? width / heads : head_width; }
  size_t key_heads() const { return kv_heads == 0 ? heads : kv_heads; }
  size_t inner() const;  // width of the feed-forward layers
  size_t positions_limit() const { return max_context == 0 ? context : max_context; }
  bool operator==(const ModelConfig&) const = default;
};

// Throws Error with the field, the expected and the actual value if the configuration is not valid.
void check(const ModelConfig& config);

}  // namespace quern::nn
