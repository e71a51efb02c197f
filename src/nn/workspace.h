// The memory of one team: activations of one micro-batch and what its operations need. Planned, then used.
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

// What backward needs of a norm, R rows = sequences x T. The norm's output follows from it.
struct NormActivations {
  SavedTensor normal;           // (R, C) the normalised input
  std::span<float> reciprocal;  // (R) of the input's deviation
};

// What backward needs of a block: ten numbers a row and feature. What is not here follows from it at the price of an
// elementwise operation: the outputs of norms and of GELU. Stored as config.storage says; what is stored is what
// forward went on with, so that backward belongs to the same function.
struct BlockActivations {
  NormActivations norm1;
  SavedTensor qkv;             // (R, 3C)
  SavedTensor attention;       // (R, C)
  std::span<float> logsumexp;  // (sequences, heads, T)
  NormActivations norm2;
  SavedTensor expand_input;  // (R, 4C) before GELU
};

struct WorkspaceOptions {
  size_t sequences = 1;   // of a micro-batch at most, of up to config.context positions
  bool backward = false;  // without it there is enough for a loss
  size_t members = 1;     // threads that share the workspace
  // Layers whose activations exist at once; 0 for all. With fewer than all, backward computes the activations of
  // `interval` layers at a time again, from the residual stream at their entry.
  size_t interval = 0;
  size_t logit_rows = kMicroBatchTokens;  // rows of logits at once
};

// Bytes of a workspace by purpose.
struct WorkspaceBytes {
  size_t activations = 0;  // kept for backward: of blocks, and residual streams to compute them again from
  size_t working = 0;      // what operations hand to one another, and scratch
  size_t logits = 0;
  size_t total() const { return activations + working + logits; }
};

class Workspace {
 public:
  Workspace(const ModelConfig& config, const WorkspaceOptions& options);

  // What the same arguments would allocate, to the byte.
  static WorkspaceBytes plan(const ModelConfig& config, const WorkspaceOptions& options);

  // The activations of a block. Blocks that are `interval` layers apart share them; without backward, all do.
  const BlockActivations& block(size_t layer) const { return blocks_[(layers_ - 1 - layer) % blocks_.size()]; }
  NormActivations last;  // of the final norm

  // The first of the layers that share nothing with `layer` and are computed again together with it.
  size_t first_of_group(size_t layer) const;
  // Where the residual stream at the entry of a block lies: kept where computing again starts, else `stream`.
  float* entry(size_t layer) const;

  // Forward.
  std::span<float> stream;  // (R, C) the residual stream
  std::span<float> delta;   // (R, C) what a branch adds to it
  std::span<float> inner;   // (R, C) what a branch starts from: a norm's output; in backward it is computed again
  std::span<float> wide;    // (R, 4C) inside a branch, fp32 where activations are kept in fewer bits
  std::span<float> losses;  // (R)
  // Their sum over a sequence's T rows: what sums over many sequences are made of, so that they do not depend on how
  // those were cut into micro-batches.
  double loss_of_sequence(size_t sequence, size_t T) const;

  // Backward. Two of them lie where forward had what is no longer needed.
  std::span<float> dx;       // (R, C) gradient of the residual stream
  std::span<float> dbranch;  // (R, C) the same through a branch's dropout; in the place of stream
  std::span<float> dinner;   // (R, C) gradient of inner; in the place of delta
  std::span<float> dwide;    // (R, 4C)

  std::span<float> packed;  // a gradient or activation (R, 4C), packed to be an operand of several products
  std::span<float> logits;  // (output_chunk, V)
  size_t output_chunk = 0;  // rows of logits at once

  // Scratch of the kernels, one per member.
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
  std::vector<std::span<float>> entries_;  // (R, C) a group of layers, from the top but one down
  std::vector<Scratch> scratch_;
};

}  // namespace quern
