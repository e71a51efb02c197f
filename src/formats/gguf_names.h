// Where GGUF files have the parameters of a model, and in which layout.
//
// llama.cpp rotates neighbouring elements of a head in models of type llama, and elements that are half a head apart in
// the others, as Hugging Face does in all of them. So the rows of q and k of a llama are stored in another order: row
// 2j + i of a head is Hugging Face's row i d/2 + j, for heads of d elements. Matrices of GPT-2, which Hugging Face
// stores as (in, out), are (out, in) as all others.
#pragma once

#include <string>
#include <string_view>

#include "formats/tensor_source.h"
#include "nn/models/model_config.h"

namespace quern::formats {

struct GgufPlace {
  std::string name;  // "blk.0.attn_q.weight"
  bool is_transposed = false;
  bool has_pairs = false;  // rows in the order of llama.cpp's rotary positions
};

// `parameter` must be the name of one of the model's parameters.
GgufPlace gguf_place(const nn::ModelConfig& model, std::string_view parameter);

// A parameter in the layout of the file, and the reverse. Names are unchanged.
TensorSource to_gguf(const nn::ModelConfig& model, const GgufPlace& place, TensorSource parameter);
TensorSource from_gguf(const nn::ModelConfig& model, const GgufPlace& place, TensorSource stored);

// A matrix of an adapter, A or B, with its name and layout in a file of adapters: "blk.0.attn_q.weight.lora_a" (rank,
// in) and "....lora_b" (out, rank). B has the rows of the layer's matrix, in the same order.
TensorSource adapter_to_gguf(const nn::ModelConfig& model, TensorSource matrix);

}  // namespace quern::formats
