#include "nn/workspace.h"

#include <algorithm>
#include <cassert>
#include <numeric>

#include "kernels/attention.h"
#include "kernels/attention_decode.h"
#include "kernels/gemm.h"

namespace quern::nn {
namespace {

size_t blocks_in_memory(const ActivationPlan& plan, const WorkspaceOptions& options) {
  if (!options.backward) return 1;
  return options.interval == 0 ? plan.blocks : std::min(options.interval, plan.blocks);
}

size_t context_of(const ActivationPlan& plan, const WorkspaceOptions& options) {
  return options.context == 0 ? plan.context : options.context;
}

}  // namespace

// Rows of logits: by default those of a micro-batch of ordinary size, so that the gradient of the token table is
// traversed once. For a vocabulary of 50,304 that is 51 MB; longer sequences need no more.
Workspace::Workspace(const ActivationPlan& plan, const WorkspaceOptions& options, Unallocated)
    : options_(options),
      block_count_(plan.blocks),
      rows_(options.sequences * context_of(plan, options)),
      blocks_(std::max<size_t>(1, blocks_in_memory(plan, options))),
      entries_(plan.blocks == 0 ? 0 : (plan.blocks - 1) / blocks_.size()),
      scratch_(options.members) {
  assert(options.logit_rows > 0 && options.members > 0);
  if (!options.backward) entries_.clear();
  output_chunk = std::min(options.logit_rows, rows_);
  lay_out(plan);
}

Workspace::Workspace(const ActivationPlan& plan, const WorkspaceOptions& options)
    : Workspace(plan, options, Unallocated{}) {
  arena_.allocate();
  lay_out(plan);
}

WorkspaceBytes Workspace::plan(const ActivationPlan& plan, const WorkspaceOptions& options) {
  return Workspace(plan, options, Unallocated{}).bytes_;
}

double Workspace::loss_of_sequence(size_t sequence, size_t T) const {
  const std::span<const float> mine = losses.subspan(sequence * T, T);
  return std::accumulate(mine.begin(), mine.end(), 0.0);
}

size_t Workspace::first_of_group(size_t block) const {
  const size_t from_top = block_count_ - 1 - block, end = block_count_ - from_top / blocks_.size() * blocks_.size();
  return end > blocks_.size() ? end - blocks_.size() : 0;
}

// Groups count from the top, so that the topmost group, which is not recomputed, is complete.
float* Workspace::entry(size_t block) const {
  const size_t group = (block_count_ - 1 - block) / blocks_.size();
  if (group == 0 || entries_.empty() || block != first_of_group(block)) return stream.data();
  return entries_[group - 1].data();
}

void Workspace::lay_out(const ActivationPlan& plan) {
  size_t before = arena_.used_bytes();
  const auto taken = [&] {
    const size_t bytes = arena_.used_bytes() - before;
    before += bytes;
    return bytes;
  };
  lay_out_activations(plan);
  bytes_.activations = taken();
  lay_out_working(plan);
  bytes_.working = taken();
  logits = arena_.take<float>(output_chunk * plan.outputs);
  bytes_.logits = taken();
}

void Workspace::take_set(const SavedPlan& plan, SavedSet& set) {
  set.tensors_.clear();
  for (const SavedPlan::Slot& slot : plan.slots()) {
    const size_t bytes = rows_ * slot.width * kernels::size_of(slot.type);
    set.tensors_.push_back({arena_.take<std::byte>(bytes).data(), slot.type});
  }
}

void Workspace::lay_out_activations(const ActivationPlan& plan) {
  for (SavedSet& block : blocks_) take_set(plan.block, block);
  take_set(plan.head, head_);
  for (std::span<float>& entry : entries_) entry = arena_.take<float>(rows_ * plan.width);
}

size_t Workspace::attention_scratch(const ActivationPlan& plan) const {
  if (plan.attention.heads == 0) return 0;
  kernels::AttentionShape shape = plan.attention;
  shape.T = rows_ / options_.sequences;
  if (options_.cache_capacity == 0) return kernels::attention_scratch(shape);
  return kernels::attention_decode_scratch({.heads = shape.heads,
                                            .kv_heads = shape.kv_heads,
                                            .head_dim = shape.head_dim,
                                            .capacity = options_.cache_capacity});
}

void Workspace::lay_out_working(const ActivationPlan& plan) {
  const size_t R_C = rows_ * plan.width, R_wide = rows_ * plan.wide;
  stream = arena_.take<float>(R_C);
  delta = arena_.take<float>(R_C);
  inner = arena_.take<float>(R_C);
  wide = arena_.take<float>(R_wide);
  losses = arena_.take<float>(rows_);
  counted_rows = arena_.take<int32_t>(rows_);
  counted_targets = arena_.take<int32_t>(rows_);
  counted_losses = arena_.take<float>(rows_);
  low = arena_.take<float>(rows_ * plan.adapter_rank);
  if (options_.backward) {
    dx = arena_.take<float>(R_C);
    dbranch = stream;
    dinner = delta;
    dwide = arena_.take<float>(R_wide);
    dlow = arena_.take<float>(rows_ * plan.adapter_rank);
    dropped = arena_.take<float>(rows_ * plan.dropped);
    packed = arena_.take<float>(kernels::packed_size(rows_, std::max({plan.wide, plan.width, plan.adapter_rank})));
  }
  for (Scratch& scratch : scratch_) {
    scratch.gemm = arena_.take<float>(kernels::kGemmScratch);
    scratch.attention = arena_.take<float>(attention_scratch(plan));
  }
}

}  // namespace quern::nn
