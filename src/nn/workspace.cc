#include "nn/workspace.h"

#include <algorithm>
#include <cassert>
#include <numeric>

#include "kernels/attention.h"
#include "kernels/gemm.h"

namespace quern {
namespace {

size_t layers_at_once(const ModelConfig& config, const WorkspaceOptions& options) {
  if (!options.backward) return 1;
  return options.interval == 0 ? config.layers : std::min(options.interval, config.layers);
}

}  // namespace

// Rows of logits: by default those of a micro-batch of ordinary size, so that the gradient of the token table is
// traversed once. For a vocabulary of 50,304 that is 51 MB; longer sequences need no more.
Workspace::Workspace(const ModelConfig& config, const WorkspaceOptions& options, Unallocated)
    : options_(options),
      layers_(config.layers),
      rows_(options.sequences * config.context),
      blocks_(layers_at_once(config, options)),
      entries_((config.layers - 1) / blocks_.size()),
      scratch_(options.members) {
  check(config);
  assert(options.logit_rows > 0 && options.members > 0);
  if (!options.backward) entries_.clear();
  output_chunk = std::min(options.logit_rows, rows_);
  lay_out(config);
}

Workspace::Workspace(const ModelConfig& config, const WorkspaceOptions& options)
    : Workspace(config, options, Unallocated{}) {
  arena_.allocate();
  lay_out(config);
}

WorkspaceBytes Workspace::plan(const ModelConfig& config, const WorkspaceOptions& options) {
  return Workspace(config, options, Unallocated{}).bytes_;
}

double Workspace::loss_of_sequence(size_t sequence, size_t T) const {
  const std::span<const float> mine = losses.subspan(sequence * T, T);
  return std::accumulate(mine.begin(), mine.end(), 0.0);
}

size_t Workspace::first_of_group(size_t layer) const {
  const size_t from_top = layers_ - 1 - layer, end = layers_ - from_top / blocks_.size() * blocks_.size();
  return end > blocks_.size() ? end - blocks_.size() : 0;
}

// Groups count from the top, so that the topmost group, which is not recomputed, is complete.
float* Workspace::entry(size_t layer) const {
  const size_t group = (layers_ - 1 - layer) / blocks_.size();
  if (group == 0 || entries_.empty() || layer != first_of_group(layer)) return stream.data();
  return entries_[group - 1].data();
}

void Workspace::lay_out(const ModelConfig& config) {
  size_t before = arena_.used_bytes();
  const auto taken = [&] {
    const size_t bytes = arena_.used_bytes() - before;
    before += bytes;
    return bytes;
  };
  lay_out_activations(config);
  bytes_.activations = taken();
  lay_out_working(config);
  bytes_.working = taken();
  logits = arena_.take<float>(output_chunk * config.vocabulary);
  bytes_.logits = taken();
}

SavedTensor Workspace::take_saved(const ModelConfig& config, size_t width) {
  const size_t n = rows_ * width;
  return {arena_.take<std::byte>(n * kernels::size_of(config.storage)).data(), config.storage};
}

NormActivations Workspace::take_norm(const ModelConfig& config) {
  const SavedTensor normal = take_saved(config, config.width);
  return {normal, arena_.take<float>(rows_)};
}

void Workspace::lay_out_activations(const ModelConfig& config) {
  const size_t C = config.width;
  for (BlockActivations& block : blocks_) {
    block.norm1 = take_norm(config);
    block.qkv = take_saved(config, 3 * C);
    block.attention = take_saved(config, C);
    block.logsumexp = arena_.take<float>(rows_ * config.heads);
    block.norm2 = take_norm(config);
    block.expand_input = take_saved(config, 4 * C);
  }
  last = take_norm(config);
  for (std::span<float>& entry : entries_) entry = arena_.take<float>(rows_ * C);
}

void Workspace::lay_out_working(const ModelConfig& config) {
  const size_t R_C = rows_ * config.width;
  stream = arena_.take<float>(R_C);
  delta = arena_.take<float>(R_C);
  inner = arena_.take<float>(R_C);
  wide = arena_.take<float>(4 * R_C);
  losses = arena_.take<float>(rows_);
  if (options_.backward) {
    dx = arena_.take<float>(R_C);
    dbranch = stream;
    dinner = delta;
    dwide = arena_.take<float>(4 * R_C);
    packed = arena_.take<float>(kernels::packed_size(rows_, 4 * config.width));
  }
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

}  // namespace quern
