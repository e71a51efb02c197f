#include "nn/workspace.h"

#include <algorithm>

#include "kernels/attention.h"
#include "kernels/gemm.h"
#include "kernels/output_loss.h"

namespace quern {
namespace {

// Logits at once: 4 Mi floats are 16 MiB, and 83 rows of a vocabulary of 50,304 already use each panel of the embedding
// often enough that reading it does not count.
constexpr size_t kLogits = size_t{4} << 20;

}  // namespace

Workspace::Workspace(const ModelConfig& config, size_t sequences, bool backward)
    : sequences_(sequences),
      rows_(sequences * config.context),
      backward_(backward),
      blocks_(backward ? config.layers : 1) {
  check(config);
  output_chunk = std::clamp<size_t>(kLogits / config.vocabulary, 1, rows_);
  lay_out(config);
  arena_.allocate();
  lay_out(config);
}

void Workspace::lay_out(const ModelConfig& config) {
  const size_t wide = rows_ * config.width;
  for (BlockActivations& block : blocks_) block = lay_out_block(config);
  delta = arena_.take<float>(wide);
  x_last = arena_.take<float>(wide);
  stats_last = take_stats();
  norm_last = arena_.take<float>(wide);
  losses = arena_.take<float>(rows_);
  if (backward_) {
    dx = arena_.take<float>(wide);
    dbranch = arena_.take<float>(wide);
    dinner = arena_.take<float>(wide);
    dwide = arena_.take<float>(4 * wide);
  }
  gemm = arena_.take<float>(kernels::kGemmScratch);
  attention = arena_.take<float>(kernels::attention_scratch({.T = config.context,
                                                             .heads = config.heads,
                                                             .head_dim = config.head_dim(),
                                                             .qkv_stride = 3 * config.width,
                                                             .out_stride = config.width}));
  output = arena_.take<float>(kernels::output_loss_scratch(output_chunk, config.vocabulary));
}

NormStats Workspace::take_stats() {
  const std::span<float> mean = arena_.take<float>(rows_);
  return {mean, arena_.take<float>(rows_)};
}

BlockActivations Workspace::lay_out_block(const ModelConfig& config) {
  const size_t wide = rows_ * config.width;
  BlockActivations block;
  block.x = arena_.take<float>(wide);
  block.stats1 = take_stats();
  block.norm1 = arena_.take<float>(wide);
  block.qkv = arena_.take<float>(3 * wide);
  block.attention = arena_.take<float>(wide);
  block.logsumexp = arena_.take<float>(rows_ * config.heads);
  block.middle = arena_.take<float>(wide);
  block.stats2 = take_stats();
  block.norm2 = arena_.take<float>(wide);
  block.expand_input = arena_.take<float>(4 * wide);
  block.expanded = arena_.take<float>(4 * wide);
  return block;
}

}  // namespace quern
