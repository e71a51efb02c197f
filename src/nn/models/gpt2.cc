#include "nn/models/gpt2.h"

#include <cmath>
#include <string>

namespace quern::nn {
namespace {

// Normal with standard deviation 0.02, for projections back into the residual stream 0.02 / sqrt(2 layers).
BlockSpec block_spec(const ModelConfig& config, size_t index, const std::shared_ptr<const RotaryTable>& rotary) {
  const std::string name = "h." + std::to_string(index);
  const size_t C = config.width;
  const double deviation = 0.02 / std::sqrt(2.0 * static_cast<double>(config.layers));
  const float epsilon = static_cast<float>(config.norm_epsilon);
  const Initial residual = config.zero_projections ? Initial::constant(0) : Initial::normal(deviation);
  return {.name = name,
          .norm1 = {.name = name + ".ln_1",
                    .width = C,
                    .regions = kNorm1,
                    .block = index,
                    .kind = config.norm,
                    .epsilon = epsilon,
                    .weighted = false},
          .attention = {.name = name + ".attn",
                        .inputs = {name + ".attn.c_attn"},
                        .project = name + ".attn.c_proj",
                        .width = C,
                        .heads = config.heads,
                        .kv_heads = config.heads,
                        .head_dim = config.head_dim(),
                        .block = index,
                        .project_initial = residual,
                        .head_norm = config.qk_norm ? std::optional(HeadNormSpec{epsilon, {}, {}}) : std::nullopt,
                        .rotary = rotary},
          .norm2 = {.name = name + ".ln_2",
                    .width = C,
                    .regions = kNorm2,
                    .block = index,
                    .kind = config.norm,
                    .epsilon = epsilon,
                    .weighted = false},
          .feed_forward = {.expand = name + ".mlp.c_fc",
                           .activation = name + ".mlp.act",
                           .contract = name + ".mlp.c_proj",
                           .width = C,
                           .inner_width = config.inner(),
                           .block = index,
                           .kind = config.activation,
                           .contract_initial = residual}};
}

}  // namespace

TransformerSpec gpt2_spec(const ModelConfig& config) {
  return {
      .embedding = {.tokens = "wte.weight",
                    .positions = config.positions == Positions::kLearned ? "wpe.weight" : "",
                    .vocabulary = config.vocabulary,
                    .context = config.context,
                    .width = config.width,
                    .max_context = config.positions_limit(),
                    .tokens_initial = Initial::normal(config.embedding_deviation)},
      .block = [config](size_t index,
                        const std::shared_ptr<const RotaryTable>& rotary) { return block_spec(config, index, rotary); },
      .final_norm = {.name = "ln_f",
                     .width = config.width,
                     .regions = kFinalNorm,
                     .kind = config.norm,
                     .epsilon = static_cast<float>(config.norm_epsilon),
                     .weighted = false}};
}

}  // namespace quern::nn
