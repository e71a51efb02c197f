// The memory of one team: activations of one micro-batch and temporary buffers. Planned first, then allocated.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "core/arena.h"
#include "core/team.h"
#include "kernels/types.h"
#include "nn/micro_batch.h"
#include "nn/model_config.h"

namespace quern {

using kernels::SavedTensor;

// What backward needs of a norm, for R = sequences x T rows. The norm's output is recomputed from it.
struct NormActivations {
  SavedTensor normal;           // (R, C) the normalized input
  std::span<float> reciprocal;  // (R) of the input's standard deviation
};

// What backward needs of a block: ten numbers per row and feature. The outputs of norms and of GELU are not saved,
// because an elementwise operation recomputes them. Stored in config.storage format; forward continues from the rounded
// values, so backward differentiates the same function.
struct BlockActivations {
  NormActivations norm1;
  SavedTensor qkv;             // (R, 3C)
  SavedTensor attention;       // (R, C)
  std::span<float> logsumexp;  // (sequences, heads, T)
  NormActivations norm2;
  SavedTensor expand_input;  // (R, 4C) before GELU
};

struct WorkspaceOptions {
  size_t sequences = 1;   // maximum per micro-batch, each with up to config.context positions
  bool backward = false;  // if false, there is memory for a loss only
  size_t members = 1;     // number of threads that share the workspace
  // Number of layers whose activations exist at a time; 0 for all. With fewer, backward recomputes the activations of
  // `interval` layers at a time from the residual stream at the first of them.
  size_t interval = 0;
  size_t logit_rows = kMicroBatchTokens;  // rows of logits at a time
};

// Bytes of a workspace by purpose.
struct WorkspaceBytes {
  size_t activations = 0;  // saved for backward: block activations, and residual streams from which to recompute them
  size_t working = 0;      // temporary buffers between operations, and scratch
  size_t logits = 0;
  size_t total() const { return activations + working + logits; }
};

class Workspace {
 public:
  Workspace(const ModelConfig& config, const WorkspaceOptions& options);

  // What the constructor would allocate with these arguments, to the byte.
  static WorkspaceBytes plan(const ModelConfig& config, const WorkspaceOptions& options);

  // The activations of a block. Blocks that are `interval` layers apart share them; without backward, all blocks do.
  const BlockActivations& block(size_t layer) const { return blocks_[(layers_ - 1 - layer) % blocks_.size()]; }
  NormActivations last;  // of the final norm

  // The first layer of the group that is recomputed together with `layer`; layers in a group share no memory.
  size_t first_of_group(size_t layer) const;
  // The residual stream at the entry of a block: a saved copy where recomputation starts, otherwise `stream`.
  float* entry(size_t layer) const;

  // Forward.
  std::span<float> stream;  // (R, C) the residual stream
  std::span<float> delta;   // (R, C) a branch's contribution to it
  std::span<float> inner;   // (R, C) a branch's input, the norm's output; recomputed in backward
  std::span<float> wide;    // (R, 4C) inside a branch; fp32 even if activations are saved in 16 bits
  std::span<float> losses;  // (R)
  // The sum over a sequence's T rows. Sums over many sequences are built from these, so that they do not depend on the
  // split into micro-batches.
  double loss_of_sequence(size_t sequence, size_t T) const;

  // Backward. Two of these reuse memory that forward no longer needs.
  std::span<float> dx;       // (R, C) gradient of the residual stream
  std::span<float> dbranch;  // (R, C) the same through a branch's dropout; aliases stream
  std::span<float> dinner;   // (R, C) gradient of inner; aliases delta
  std::span<float> dwide;    // (R, 4C)

  std::span<float> packed;  // a gradient or activation (R, 4C), packed as an operand of several products
  std::span<float> logits;  // (output_chunk, V)
  size_t output_chunk = 0;  // rows of logits at a time

  // Kernel scratch, one per member.
  struct Scratch {
    std::span<float> gemm, attention;
  };
  const Scratch& scratch(const Member& member) const { return scratch_[member.index]; }

  size_t sequences() const { return options_.sequences; }
  bool has_backward() const { return options_.backward; }
  size_t planned_bytes() const { return arena_.planned_bytes(); }

 private:
  struct Unallocated {};
  Workspace(const ModelConfig& config, const WorkspaceOptions& options, Unallocated);

  void lay_out(const ModelConfig& config);
  void lay_out_activations(const ModelConfig& config);
  void lay_out_working(const ModelConfig& config);
  NormActivations take_norm(const ModelConfig& config);
  SavedTensor take_saved(const ModelConfig& config, size_t width);

  WorkspaceOptions options_;
  size_t layers_, rows_;
  WorkspaceBytes bytes_;
  Arena arena_;
  std::vector<BlockActivations> blocks_;
  std::vector<std::span<float>> entries_;  // (R, C) per group of layers, from the second-highest group down
  std::vector<Scratch> scratch_;
};

}  // namespace quern
