// Llama and its relatives Qwen2 and Qwen3: RMS norm with weights, rotary positions, grouped-query attention and SwiGLU.
// Names and layouts of the parameters are those of Hugging Face.
#pragma once

#include "nn/models/transformer.h"

namespace quern::nn {

TransformerSpec llama_spec(const ModelConfig& config);

}  // namespace quern::nn
