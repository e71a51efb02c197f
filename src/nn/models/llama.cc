#include "nn/models/llama.h"

#include <cmath>
#include <string>

namespace quern::nn {
namespace {

// Initialized like GPT-2: normal with standard deviation 0.02, for projections back into the residual stream 0.02 /
// sqrt(2 layers).
Initial residual_initial(const ModelConfig& config) {
  if (config.zero_projections) return Initial::constant(0);
  return Initial::normal(0.02 / std::sqrt(2.0 * static_cast<double>(config.layers)));
}

NormSpec norm_spec(const ModelConfig& config, const std::string& name, const NormRegions& regions,
                   std::optional<size_t> block = {}) {
  return {.name = name,
          .width = config.width,
          .regions = regions,
          .block = block,
          .kind = NormKind::kRmsnorm,
          .epsilon = static_cast<float>(config.norm_epsilon),
          .weighted = true};
}

AttentionSpec attention_spec(const ModelConfig& config, const std::string& name, size_t index,
                             const std::shared_ptr<const RotaryTable>& rotary) {
  AttentionSpec spec{.name = name,
                     .inputs = {name + ".q_proj", name + ".k_proj", name + ".v_proj"},
                     .input = name + ".{q,k,v}_proj",
                     .project = name + ".o_proj",
                     .width = config.width,
                     .heads = config.heads,
                     .kv_heads = config.key_heads(),
                     .head_dim = config.head_dim(),
                     .block = index,
                     .order = Product::kOutIn,
                     .input_bias = config.attention_bias || config.family == Family::kQwen2,
                     .project_bias = config.attention_bias,
                     .project_initial = residual_initial(config),
                     .rotary = rotary};
  if (config.family == Family::kQwen3) {
    spec.head_norm = {static_cast<float>(config.norm_epsilon), name + ".q_norm", name + ".k_norm"};
  }
  return spec;
}

BlockSpec block_spec(const ModelConfig& config, size_t index, const std::shared_ptr<const RotaryTable>& rotary) {
  const std::string name = "model.layers." + std::to_string(index), mlp = name + ".mlp";
  return {.name = name,
          .norm1 = norm_spec(config, name + ".input_layernorm", kNorm1, index),
          .attention = attention_spec(config, name + ".self_attn", index, rotary),
          .norm2 = norm_spec(config, name + ".post_attention_layernorm", kNorm2, index),
          .feed_forward = {.expand = mlp + ".up_proj",
                           .activation = mlp + ".act",
                           .contract = mlp + ".down_proj",
                           .gate = mlp + ".gate_proj",
                           .width = config.width,
                           .inner_width = config.inner(),
                           .block = index,
                           .order = Product::kOutIn,
                           .bias = config.mlp_bias,
                           .contract_initial = residual_initial(config)}};
}

}  // namespace

TransformerSpec llama_spec(const ModelConfig& config) {
  return {
      .embedding = {.tokens = "model.embed_tokens.weight",
                    .positions = "",
                    .vocabulary = config.vocabulary,
                    .context = config.context,
                    .width = config.width,
                    .max_context = config.positions_limit(),
                    .tokens_initial = Initial::normal(config.embedding_deviation)},
      .block = [config](size_t index,
                        const std::shared_ptr<const RotaryTable>& rotary) { return block_spec(config, index, rotary); },
      .final_norm = norm_spec(config, "model.norm", kFinalNorm)};
}

}  // namespace quern::nn
