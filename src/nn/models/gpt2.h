// GPT-2: LayerNorm, learned positions, GELU, and an output projection tied to the token embedding. Names and layouts of
// its parameters are those of Hugging Face. ModelConfig can replace parts of it: another norm, rotary positions,
// another activation, ...
#pragma once

#include "nn/models/transformer.h"

namespace quern::nn {

TransformerSpec gpt2_spec(const ModelConfig& config);

}  // namespace quern::nn
