#include "nn/block.h"

#include "kernels/attention.h"
#include "kernels/dropout.h"
#include "kernels/gelu.h"
#include "kernels/layernorm.h"

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

// out = norm(x + delta), sum = x + delta; without x, out = norm(sum).
void norm_forward(const Pass& pass, const Norm& norm, const float* x, float* sum, const NormStats& stats, float* out) {
  const kernels::LayernormStats kept{stats.mean.data(), stats.reciprocal.data()};
  const size_t C = pass.config.width;
  if (x == nullptr) {
    kernels::layernorm_forward(sum, norm.weight, norm.bias, out, kept, pass.rows(), C);
  } else {
    kernels::residual_layernorm_forward(x, pass.work.delta.data(), sum, norm.weight, norm.bias, out, kept, pass.rows(),
                                        C);
  }
}

void attention_forward(const Pass& pass, const BlockActivations& a, size_t layer) {
  const size_t T = pass.batch.T, C = pass.config.width, heads = pass.config.heads;
  for (size_t s = 0; s < pass.batch.sequences; ++s) {
    kernels::attention_forward(attention_shape(pass), a.qkv.data() + s * T * 3 * C, a.attention.data() + s * T * C,
                               a.logsumexp.data() + s * heads * T,
                               dropout_of(pass, Purpose::kAttentionDropout, layer, s), 0, heads, pass.work.attention);
  }
}

// dqkv (rows, 3C) into work.dwide, from work.dinner.
void attention_backward(const Pass& pass, const BlockActivations& a, size_t layer) {
  const size_t T = pass.batch.T, C = pass.config.width, heads = pass.config.heads;
  for (size_t s = 0; s < pass.batch.sequences; ++s) {
    kernels::attention_backward(attention_shape(pass), a.qkv.data() + s * T * 3 * C, a.attention.data() + s * T * C,
                                a.logsumexp.data() + s * heads * T, pass.work.dinner.data() + s * T * C,
                                pass.work.dwide.data() + s * T * 3 * C,
                                dropout_of(pass, Purpose::kAttentionDropout, layer, s), 0, heads, pass.work.attention);
  }
}

// work.dx += the gradient through a norm whose output has the gradient work.dinner.
void norm_backward(const Pass& pass, const Norm& norm, const NormSlots& slots, const float* x, const NormStats& stats,
                   float* gradient) {
  kernels::layernorm_backward({.x = x,
                               .weight = norm.weight,
                               .dout = pass.work.dinner.data(),
                               .stats = {stats.mean.data(), stats.reciprocal.data()},
                               .dx = pass.work.dx.data(),
                               .dweight = gradient + slots.weight,
                               .dbias = gradient + slots.bias},
                              pass.rows(), pass.config.width);
}

// The gradient of what a branch added: work.dx, through the branch's dropout.
const float* branch_gradient(const Pass& pass, Purpose purpose, size_t layer) {
  if (pass.dropout == 0.0f) return pass.work.dx.data();
  apply_dropout(pass, purpose, layer, pass.work.dx.data(), pass.work.dbranch.data());
  return pass.work.dbranch.data();
}

LinearGradient gradient_of(const LinearSlots& slots, float* gradient) {
  return {gradient + slots.weight, gradient + slots.bias};
}

}  // namespace

void apply_dropout(const Pass& pass, Purpose purpose, size_t layer, const float* x, float* out) {
  if (pass.dropout == 0.0f && x == out) return;
  const size_t n = pass.batch.T * pass.config.width;
  for (size_t s = 0; s < pass.batch.sequences; ++s) {
    kernels::dropout(dropout_of(pass, purpose, layer, s), x + s * n, out + s * n, n);
  }
}

void block_forward(const Pass& pass, const BlockWeights& weights, const BlockActivations& a, size_t layer,
                   const float* below) {
  Workspace& work = pass.work;
  const size_t rows = pass.rows();
  norm_forward(pass, weights.norm1, below, a.x.data(), a.stats1, a.norm1.data());
  linear_forward(weights.qkv, a.norm1.data(), a.qkv.data(), rows, work.gemm);
  attention_forward(pass, a, layer);
  linear_forward(weights.project, a.attention.data(), work.delta.data(), rows, work.gemm);
  apply_dropout(pass, Purpose::kResidualDropout, layer, work.delta.data(), work.delta.data());

  norm_forward(pass, weights.norm2, a.x.data(), a.middle.data(), a.stats2, a.norm2.data());
  linear_gelu_forward(weights.expand, a.norm2.data(), a.expand_input.data(), a.expanded.data(), rows, work.gemm);
  linear_forward(weights.contract, a.expanded.data(), work.delta.data(), rows, work.gemm);
  apply_dropout(pass, Purpose::kFeedForwardDropout, layer, work.delta.data(), work.delta.data());
}

void block_backward(const Pass& pass, const BlockWeights& weights, const BlockActivations& a, const BlockSlots& slots,
                    size_t layer, float* gradient) {
  Workspace& work = pass.work;
  const size_t rows = pass.rows();
  const float* d = branch_gradient(pass, Purpose::kFeedForwardDropout, layer);
  linear_backward(weights.contract, a.expanded.data(), d, work.dwide.data(), gradient_of(slots.contract, gradient),
                  rows, work.gemm);
  kernels::gelu_backward(a.expand_input.data(), work.dwide.data(), work.dwide.data(), rows * 4 * pass.config.width);
  linear_backward(weights.expand, a.norm2.data(), work.dwide.data(), work.dinner.data(),
                  gradient_of(slots.expand, gradient), rows, work.gemm);
  norm_backward(pass, weights.norm2, slots.norm2, a.middle.data(), a.stats2, gradient);

  d = branch_gradient(pass, Purpose::kResidualDropout, layer);
  linear_backward(weights.project, a.attention.data(), d, work.dinner.data(), gradient_of(slots.project, gradient),
                  rows, work.gemm);
  attention_backward(pass, a, layer);
  linear_backward(weights.qkv, a.norm1.data(), work.dwide.data(), work.dinner.data(), gradient_of(slots.qkv, gradient),
                  rows, work.gemm);
  norm_backward(pass, weights.norm1, slots.norm1, a.x.data(), a.stats1, gradient);
}

}  // namespace quern
