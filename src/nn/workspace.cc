#include "nn/workspace.h"

#include <algorithm>

#include "kernels/attention.h"
#include "kernels/gemm.h"
#include "nn/micro_batch.h"

namespace quern {
namespace {

// Rows of logits at once: those of a micro-batch of ordinary size, so that the gradient of the token table is gone
// through once. For a vocabulary of 50,304 that is 51 MB; longer sequences need no more.
constexpr size_t kLogitRows = kMicroBatchTokens;

}  // namespace

Workspace::Workspace(const ModelConfig& config, size_t sequences, bool backward, size_t members)
    : sequences_(sequences),
      rows_(sequences * config.context),
      backward_(backward),
      blocks_(backward ? config.layers : 1),
      scratch_(members) {
  check(config);
  output_chunk = std::min(kLogitRows, rows_);
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
    packed = arena_.take<float>(kernels::packed_size(rows_, 4 * config.width));
  }
  logits = arena_.take<float>(output_chunk * config.vocabulary);
  const size_t attention = kernels::attention_scratch({.T = config.context,
                                                       .heads = config.heads,
                                                       .head_dim = config.head_dim(),
                                                       .qkv_stride = 3 * config.width,
                                                       .out_stride = config.width});
  for (Scratch& scratch : scratch_) {
    scratch.gemm = arena_.take<float>(kernels::kGemmScratch);
    scratch.attention = arena_.take<float>(attention);
  }
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
