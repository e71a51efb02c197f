// The memory of one team: activations of one micro-batch and temporary buffers. Planned first, then allocated.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "core/arena.h"
#include "core/team.h"
#include "kernels/types.h"
#include "nn/activation_plan.h"
#include "nn/micro_batch.h"

namespace quern::nn {

using kernels::SavedTensor;

// The tensors that a block, or the model's head, saves for backward.
class SavedSet {
 public:
  const SavedTensor& operator[](SlotId slot) const { return tensors_[static_cast<size_t>(slot)]; }
  // The values of an fp32 slot.
  float* floats(SlotId slot) const { return static_cast<float*>((*this)[slot].data); }

 private:
  friend class Workspace;
  std::vector<SavedTensor> tensors_;
};

struct WorkspaceOptions {
  size_t sequences = 1;   // maximum per micro-batch
  size_t context = 0;     // maximum rows per sequence; 0 for the model's
  bool backward = false;  // if false, there is memory for forward only
  size_t members = 1;     // number of threads that share the workspace
  // Number of blocks whose activations exist at a time; 0 for all. With fewer, backward recomputes the activations of
  // `interval` blocks at a time from the residual stream at the first of them.
  size_t interval = 0;
  size_t logit_rows = kMicroBatchTokens;  // rows of logits at a time
  size_t cache_capacity = 0;              // positions of a key/value cache that attention reads; 0 for none
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
  Workspace(const ActivationPlan& plan, const WorkspaceOptions& options);

  // What the constructor would allocate with these arguments, to the byte.
  static WorkspaceBytes plan(const ActivationPlan& plan, const WorkspaceOptions& options);

  // The activations of a block. Blocks that are `interval` apart share them; without backward, all blocks do.
  const SavedSet& block(size_t index) const { return blocks_[(block_count_ - 1 - index) % blocks_.size()]; }
  // Those outside blocks, such as the final norm's.
  const SavedSet& head() const { return head_; }

  // The first block of the group that is recomputed together with `block`; blocks in a group share no memory.
  size_t first_of_group(size_t block) const;
  // The residual stream at the entry of a block: a saved copy where recomputation starts, otherwise `stream`.
  float* entry(size_t block) const;

  // Forward, for R = sequences x rows per sequence.
  std::span<float> stream;  // (R, C) the residual stream
  std::span<float> delta;   // (R, C) a branch's contribution to it
  std::span<float> inner;   // (R, C) a branch's input, the norm's output; recomputed in backward
  std::span<float> wide;    // (R, wide) inside a branch; fp32 even if activations are saved in 16 bits
  std::span<float> losses;  // (R)
  // The sum over a sequence's T rows. Sums over many sequences are built from these, so that they do not depend on the
  // split into micro-batches.
  double loss_of_sequence(size_t sequence, size_t T) const;

  // Backward. Two of these reuse memory that forward no longer needs.
  std::span<float> dx;       // (R, C) gradient of the residual stream
  std::span<float> dbranch;  // (R, C) the same through a branch's dropout; aliases stream
  std::span<float> dinner;   // (R, C) gradient of inner; aliases delta
  std::span<float> dwide;    // (R, wide)

  // Of low-rank adapters; empty without them.
  std::span<float> low;      // (R, rank) the input of B
  std::span<float> dlow;     // (R, rank) its gradient
  std::span<float> dropped;  // (R, dropped) the input of A, or its gradient, with dropout

  std::span<float> packed;  // a gradient or activation (R, wide), packed as an operand of several products
  // The rows whose targets count, if not all of them do: index, target and loss of each.
  std::span<int32_t> counted_rows, counted_targets;  // (R)
  std::span<float> counted_losses;                   // (R)

  std::span<float> logits;  // (output_chunk, outputs)
  size_t output_chunk = 0;  // rows of logits at a time

  // Kernel scratch, one per member.
  struct Scratch {
    std::span<float> gemm, attention;
  };
  const Scratch& scratch(const Member& member) const { return scratch_[member.index]; }

  size_t sequences() const { return options_.sequences; }
  size_t rows() const { return rows_; }
  bool has_backward() const { return options_.backward; }
  size_t planned_bytes() const { return arena_.planned_bytes(); }

 private:
  struct Unallocated {};
  Workspace(const ActivationPlan& plan, const WorkspaceOptions& options, Unallocated);

  void lay_out(const ActivationPlan& plan);
  void lay_out_activations(const ActivationPlan& plan);
  void lay_out_working(const ActivationPlan& plan);
  void take_set(const SavedPlan& plan, SavedSet& set);
  size_t attention_scratch(const ActivationPlan& plan) const;

  WorkspaceOptions options_;
  size_t block_count_, rows_;
  WorkspaceBytes bytes_;
  Arena arena_;
  std::vector<SavedSet> blocks_;
  SavedSet head_;
  std::vector<std::span<float>> entries_;  // (R, C) per group of blocks, from the second-highest group down
  std::vector<Scratch> scratch_;
};

}  // namespace quern::nn
