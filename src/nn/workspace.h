// The memory of one team: activations of one micro-batch and what its operations need. Planned, then used.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "core/arena.h"
#include "core/team.h"
#include "nn/model_config.h"

namespace quern {

struct NormStats {
  std::span<float> mean, reciprocal;  // (R)
};

// What backward needs of a block, R rows = sequences x T.
struct BlockActivations {
  std::span<float> x;  // (R, C) the residual stream at the block's entry
  NormStats stats1;
  std::span<float> norm1;      // (R, C)
  std::span<float> qkv;        // (R, 3C)
  std::span<float> attention;  // (R, C)
  std::span<float> logsumexp;  // (sequences, heads, T)
  std::span<float> middle;     // (R, C) the residual stream between attention and feed-forward
  NormStats stats2;
  std::span<float> norm2;         // (R, C)
  std::span<float> expand_input;  // (R, 4C) before GELU
  std::span<float> expanded;      // (R, 4C) after GELU
};

class Workspace {
 public:
  // For micro-batches of up to `sequences` sequences of up to config.context positions. With `backward` false there is
  // one set of block activations, used by every block in turn: enough for a loss. `members` threads share it.
  Workspace(const ModelConfig& config, size_t sequences, bool backward, size_t members = 1);

  // The activations of a block; without backward, the same for every block.
  const BlockActivations& block(size_t layer) const { return blocks_[layer % blocks_.size()]; }

  std::span<float> delta;   // (R, C) what a branch adds to the residual stream
  std::span<float> x_last;  // (R, C) the residual stream after the last block
  NormStats stats_last;
  std::span<float> norm_last;  // (R, C)
  std::span<float> losses;     // (R)

  std::span<float> dx;       // (R, C) gradient of the residual stream
  std::span<float> dbranch;  // (R, C)
  std::span<float> dinner;   // (R, C)
  std::span<float> dwide;    // (R, 4C)

  std::span<float> packed;  // a gradient or activation (R, 4C), packed to be an operand of several products
  std::span<float> logits;  // (output_chunk, V)
  size_t output_chunk = 0;  // rows of logits at once

  // Scratch of the kernels, one per member.
  struct Scratch {
    std::span<float> gemm, attention;
  };
  const Scratch& scratch(const Member& member) const { return scratch_[member.index]; }

  size_t sequences() const { return sequences_; }
  bool has_backward() const { return backward_; }
  size_t planned_bytes() const { return arena_.planned_bytes(); }

 private:
  void lay_out(const ModelConfig& config);
  BlockActivations lay_out_block(const ModelConfig& config);
  NormStats take_stats();

  size_t sequences_, rows_;
  bool backward_;
  Arena arena_;
  std::vector<BlockActivations> blocks_;
  std::vector<Scratch> scratch_;
};

}  // namespace quern
