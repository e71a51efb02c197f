#include "checkpoint/hf_config.h"
#include "core/json.h"

#include <nlohmann/json.hpp>

namespace quern::checkpoint {

HfConfig hf_config(const nn::ModelConfig& model, double dropout) {
  return {.layers = model.layers,
          .heads = model.heads,
          .width = model.width,
          .context = model.context,
          .vocabulary = model.vocabulary,
          .dropout = dropout};
}

std::string to_json(const HfConfig& config) {
  using Json = nlohmann::ordered_json;
  const Json end = config.end_of_text ? Json(*config.end_of_text) : Json(nullptr);
  const Json json = {{"architectures", {"GPT2LMHeadModel"}},
                     {"model_type", "gpt2"},
                     {"n_layer", config.layers},
                     {"n_head", config.heads},
                     {"n_embd", config.width},
                     {"n_inner", nullptr},
                     {"n_positions", config.context},
                     {"n_ctx", config.context},
                     {"vocab_size", config.vocabulary},
                     {"activation_function", "gelu_new"},
                     {"layer_norm_epsilon", config.layer_norm_epsilon},
                     {"embd_pdrop", config.dropout},
                     {"attn_pdrop", config.dropout},
                     {"resid_pdrop", config.dropout},
                     {"scale_attn_weights", true},
                     {"initializer_range", 0.02},
                     {"tie_word_embeddings", true},
                     {"bos_token_id", end},
                     {"eos_token_id", end},
                     {"torch_dtype", "float32"},
                     {"use_cache", true}};
  return json_text(json, 2) + "\n";
}

}  // namespace quern::checkpoint
