// config.json and index files as they are on the Hugging Face Hub, with small sizes.
#pragma once

#include <string>
#include <vector>

namespace quern::formats {

inline const char* const kGpt2Config = R"({
  "activation_function": "gelu_new", "architectures": ["GPT2LMHeadModel"], "attn_pdrop": 0.1, "bos_token_id": 96,
  "embd_pdrop": 0.1, "eos_token_id": 96, "initializer_range": 0.02, "layer_norm_epsilon": 1e-05, "model_type": "gpt2",
  "n_ctx": 32, "n_embd": 24, "n_head": 3, "n_layer": 2, "n_positions": 32, "resid_pdrop": 0.1,
  "summary_activation": null, "summary_type": "cls_index", "task_specific_params": {"text-generation": {"do_sample": true}},
  "vocab_size": 97
})";

// Older files: rope_theta and rope_scaling at the top.
inline const char* const kLlamaConfig = R"({
  "architectures": ["LlamaForCausalLM"], "attention_bias": false, "attention_dropout": 0.0, "bos_token_id": 1,
  "eos_token_id": [2, 5], "head_dim": 16, "hidden_act": "silu", "hidden_size": 48, "initializer_range": 0.02,
  "intermediate_size": 96, "max_position_embeddings": 131072, "mlp_bias": false, "model_type": "llama",
  "num_attention_heads": 6, "num_hidden_layers": 2, "num_key_value_heads": 2, "pretraining_tp": 1,
  "rms_norm_eps": 1e-05, "rope_scaling": {"factor": 32.0, "high_freq_factor": 4.0, "low_freq_factor": 1.0,
  "original_max_position_embeddings": 8192, "rope_type": "llama3"}, "rope_theta": 500000.0,
  "tie_word_embeddings": true, "torch_dtype": "bfloat16", "transformers_version": "4.45.0", "use_cache": true,
  "vocab_size": 128
})";

// Newer files: rope_parameters.
inline const char* const kQwen3Config = R"({
  "architectures": ["Qwen3ForCausalLM"], "attention_bias": false, "attention_dropout": 0.0, "dtype": "bfloat16",
  "eos_token_id": 3, "head_dim": 32, "hidden_act": "silu", "hidden_size": 40, "intermediate_size": 64,
  "layer_types": ["full_attention", "full_attention"], "max_position_embeddings": 40960, "max_window_layers": 28,
  "model_type": "qwen3", "num_attention_heads": 4, "num_hidden_layers": 2, "num_key_value_heads": 2,
  "rms_norm_eps": 1e-06, "rope_parameters": {"rope_theta": 1000000, "rope_type": "default"}, "sliding_window": null,
  "tie_word_embeddings": true, "use_cache": true, "use_sliding_window": false, "vocab_size": 200
})";

inline const char* const kQwen2Config = R"({
  "architectures": ["Qwen2ForCausalLM"], "attention_dropout": 0.0, "bos_token_id": 1, "eos_token_id": 1,
  "hidden_act": "silu", "hidden_size": 56, "intermediate_size": 64, "max_position_embeddings": 32768,
  "max_window_layers": 24, "model_type": "qwen2", "num_attention_heads": 7, "num_hidden_layers": 1,
  "num_key_value_heads": 1, "rms_norm_eps": 1e-06, "rope_theta": 1000000.0, "sliding_window": 32768,
  "tie_word_embeddings": false, "torch_dtype": "bfloat16", "use_cache": true, "use_sliding_window": false,
  "vocab_size": 200
})";

inline std::vector<std::string> hf_configs() { return {kGpt2Config, kLlamaConfig, kQwen2Config, kQwen3Config}; }

inline std::string hf_index() {
  return R"({"metadata": {"total_size": 1234, "total_parameters": 617}, "weight_map": {
  "lm_head.weight": "model-00002-of-00002.safetensors",
  "model.embed_tokens.weight": "model-00001-of-00002.safetensors",
  "model.layers.0.self_attn.q_proj.weight": "model-00001-of-00002.safetensors"
}})";
}

}  // namespace quern::formats
