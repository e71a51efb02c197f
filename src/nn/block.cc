#include "nn/block.h"

#include <algorithm>

#include "kernels/attention.h"
#include "kernels/dropout.h"
#include "kernels/gelu.h"
#include "kernels/layernorm.h"
#include "nn/linear.h"

namespace quern {
namespace {

kernels::Dropout dropout_of(const Pass& pass, Purpose purpose, size_t layer, size_t sequence) {
  return {.rate = pass.dropout,
          .stream = {.seed = pass.batch.seed,
                     .purpose = purpose,
                     .layer = static_cast<uint16_t>(layer),
                     .step = pass.batch.step,
                     .sequence = pass.batch.first_sequence + static_cast<uint32_t>(sequence)}};
}

kernels::AttentionShape attention_shape(const Pass& pass) {
  const size_t C = pass.config.width;
  return {.T = pass.batch.T,
          .heads = pass.config.heads,
          .head_dim = pass.config.head_dim(),
          .qkv_stride = 3 * C,
          .out_stride = C};
}

// Calls do(sequence, head) for this member's part of them.
template <typename Do>
void for_my_heads(const Pass& pass, Do visit) {
  const size_t heads = pass.config.heads;
  const Range mine = pass.member.part(pass.batch.sequences * heads);
  for (size_t at = mine.begin; at < mine.end;) {
    const size_t s = at / heads, last = std::min(mine.end, (s + 1) * heads);
    visit(s, at - s * heads, last - s * heads);
    at = last;
  }
}

void attention_forward(const Pass& pass, const BlockActivations& a, size_t layer) {
  const size_t T = pass.batch.T, C = pass.config.width, heads = pass.config.heads;
  for_my_heads(pass, [&](size_t s, size_t first, size_t last) {
    kernels::attention_forward(attention_shape(pass), a.qkv.data() + s * T * 3 * C, a.attention.data() + s * T * C,
                               a.logsumexp.data() + s * heads * T,
                               dropout_of(pass, Purpose::kAttentionDropout, layer, s), first, last,
                               pass.work.scratch(pass.member).attention);
  });
}

// dqkv (rows, 3C) into work.dwide, from work.dinner.
void attention_backward(const Pass& pass, const BlockActivations& a, size_t layer) {
  const size_t T = pass.batch.T, C = pass.config.width, heads = pass.config.heads;
  for_my_heads(pass, [&](size_t s, size_t first, size_t last) {
    kernels::attention_backward(
        attention_shape(pass), a.qkv.data() + s * T * 3 * C, a.attention.data() + s * T * C,
        a.logsumexp.data() + s * heads * T, pass.work.dinner.data() + s * T * C, pass.work.dwide.data() + s * T * 3 * C,
        dropout_of(pass, Purpose::kAttentionDropout, layer, s), first, last, pass.work.scratch(pass.member).attention);
  });
}

// What a branch added to the residual stream, through the branch's dropout.
void drop_delta(const Pass& pass, Purpose purpose, size_t layer) {
  pass.member.meet();
  if (pass.dropout == 0.0f) return;
  apply_dropout(pass, purpose, layer, pass.work.delta.data(), pass.work.delta.data());
  pass.member.meet();
}

// The gradient of what a branch added: work.dx, through the branch's dropout.
const float* branch_gradient(const Pass& pass, Purpose purpose, size_t layer) {
  if (pass.dropout == 0.0f) return pass.work.dx.data();
  apply_dropout(pass, purpose, layer, pass.work.dx.data(), pass.work.dbranch.data());
  pass.member.meet();
  return pass.work.dbranch.data();
}

void gelu_backward(const Pass& pass, const float* input) {
  const Range mine = pass.member.part(pass.rows() * 4 * pass.config.width, 16);
  float* d = pass.work.dwide.data() + mine.begin;
  kernels::gelu_backward(input + mine.begin, d, d, mine.size());
  pass.member.meet();
}

}  // namespace

void norm_forward(const Pass& pass, const Norm& norm, const float* x, float* sum, const NormStats& stats, float* out) {
  const Range mine = pass.member.part(pass.rows());
  const size_t C = pass.config.width, at = mine.begin * C;
  const kernels::LayernormStats kept{stats.mean.data() + mine.begin, stats.reciprocal.data() + mine.begin};
  if (x == nullptr) {
    kernels::layernorm_forward(sum + at, norm.weight, norm.bias, out + at, kept, mine.size(), C);
  } else {
    kernels::residual_layernorm_forward(x + at, pass.work.delta.data() + at, sum + at, norm.weight, norm.bias, out + at,
                                        kept, mine.size(), C);
  }
}

// By one member: the sums over rows are in the order of the rows, and the whole is under a hundredth of a pass.
void norm_backward(const Pass& pass, const Norm& norm, const NormSlots& slots, const float* x, const NormStats& stats) {
  const size_t C = pass.config.width, segment = pass.layout.tensors()[slots.tensor].first_segment;
  const Turn& turn = pass.batch.turn;
  if (pass.member.leads()) {
    float* gradient = pass.gradient->values().data();
    pass.gradient->enter(segment, turn, pass.member);  // the bias goes with the weight
    if (turn.first) {
      std::fill_n(gradient + slots.weight, C, 0.0f);
      std::fill_n(gradient + slots.bias, C, 0.0f);
    }
    kernels::layernorm_backward({.x = x,
                                 .weight = norm.weight,
                                 .dout = pass.work.dinner.data(),
                                 .stats = {stats.mean.data(), stats.reciprocal.data()},
                                 .dx = pass.work.dx.data(),
                                 .dweight = gradient + slots.weight,
                                 .dbias = gradient + slots.bias},
                                pass.rows(), C);
    pass.gradient->leave(segment + 1, turn);
    pass.gradient->leave(segment, turn);
  }
  pass.member.meet();
}

void apply_dropout(const Pass& pass, Purpose purpose, size_t layer, const float* x, float* out) {
  if (pass.dropout == 0.0f && x == out) return;
  const size_t n = pass.batch.T * pass.config.width;
  const Range mine = pass.member.part(n, 64);  // the unit of the stream of random numbers
  for (size_t s = 0; s < pass.batch.sequences; ++s) {
    const size_t at = s * n + mine.begin;
    kernels::dropout(dropout_of(pass, purpose, layer, s), x + at, out + at, mine.size(), mine.begin);
  }
}

void block_forward(const Pass& pass, const BlockWeights& weights, const BlockActivations& a, size_t layer,
                   const float* below) {
  const size_t rows = pass.rows();
  const Member& member = pass.member;
  norm_forward(pass, weights.norm1, below, a.x.data(), a.stats1, a.norm1.data());
  member.meet();
  linear_forward(weights.qkv, a.norm1.data(), a.qkv.data(), rows, pass.gemm_scratch(), member);
  member.meet();
  attention_forward(pass, a, layer);
  member.meet();
  linear_forward(weights.project, a.attention.data(), pass.work.delta.data(), rows, pass.gemm_scratch(), member);
  drop_delta(pass, Purpose::kResidualDropout, layer);

  norm_forward(pass, weights.norm2, a.x.data(), a.middle.data(), a.stats2, a.norm2.data());
  member.meet();
  linear_gelu_forward(weights.expand, a.norm2.data(), a.expand_input.data(), a.expanded.data(), rows,
                      pass.gemm_scratch(), member);
  member.meet();
  linear_forward(weights.contract, a.expanded.data(), pass.work.delta.data(), rows, pass.gemm_scratch(), member);
  drop_delta(pass, Purpose::kFeedForwardDropout, layer);
}

void block_backward(const Pass& pass, const BlockWeights& weights, const BlockActivations& a, size_t layer) {
  Workspace& work = pass.work;
  const BlockSlots& slots = pass.layout.blocks()[layer];
  const float* d = branch_gradient(pass, Purpose::kFeedForwardDropout, layer);
  linear_backward(pass, weights.contract, slots.contract, a.expanded.data(), d, work.dwide.data());
  gelu_backward(pass, a.expand_input.data());
  linear_backward(pass, weights.expand, slots.expand, a.norm2.data(), work.dwide.data(), work.dinner.data());
  norm_backward(pass, weights.norm2, slots.norm2, a.middle.data(), a.stats2);

  d = branch_gradient(pass, Purpose::kResidualDropout, layer);
  linear_backward(pass, weights.project, slots.project, a.attention.data(), d, work.dinner.data());
  attention_backward(pass, a, layer);
  pass.member.meet();
  linear_backward(pass, weights.qkv, slots.qkv, a.norm1.data(), work.dwide.data(), work.dinner.data());
  norm_backward(pass, weights.norm1, slots.norm1, a.x.data(), a.stats1);
}

}  // namespace quern
