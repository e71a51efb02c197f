#include "nn/block.h"

#include <algorithm>

#include "kernels/attention.h"
#include "kernels/convert.h"
#include "kernels/dropout.h"
#include "kernels/gelu.h"
#include "kernels/layernorm.h"
#include "nn/linear.h"
#include "nn/regions.h"

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

// Calls visit(sequence, first_head, last_head) for each range of heads in this member's part.
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

// The fp32 values of a saved array: the array itself if it is fp32, otherwise a buffer in work.wide that starts after
// width_before numbers per row.
float* whole(const Pass& pass, const SavedTensor& saved, size_t width_before) {
  if (saved.type == kernels::DType::kF32) return static_cast<float*>(saved.data);
  return pass.work.wide.data() + pass.rows() * width_before;
}
float* whole_qkv(const Pass& pass, const BlockActivations& a) { return whole(pass, a.qkv, 0); }
float* whole_attention(const Pass& pass, const BlockActivations& a) {
  return whole(pass, a.attention, 3 * pass.config.width);
}

// Bytes per saved number.
size_t kept_bytes(const Pass& pass) { return kernels::size_of(pass.config.storage); }

bool in_16_bits(const Pass& pass) { return pass.config.storage != kernels::DType::kF32; }

// work.wide has room for both: 3C + C numbers per row.
void widen_attention(const Pass& pass, const BlockActivations& a) {
  if (!in_16_bits(pass)) return;
  const Timed timed(kWiden, element_bytes(pass, 4 * pass.config.width, 4 + kept_bytes(pass)));
  const size_t n = pass.rows() * pass.config.width;
  const Range qkv = pass.member.part(3 * n, 16), attention = pass.member.part(n, 16);
  const auto widen = [](const SavedTensor& saved, size_t at, float* out, size_t count) {
    kernels::widen(saved.type, static_cast<const kernels::Half*>(saved.data) + at, out + at, count);
  };
  widen(a.qkv, qkv.begin, whole_qkv(pass, a), qkv.size());
  widen(a.attention, attention.begin, whole_attention(pass, a), attention.size());
  pass.member.meet();
}

void attention_forward(const Pass& pass, const BlockActivations& a, size_t layer, bool again) {
  const Timed timed(kAttentionForward.of(again), attention_flops(pass, 2), layer_tag(layer));
  const size_t T = pass.batch.T, C = pass.config.width, heads = pass.config.heads;
  const float* qkv = whole_qkv(pass, a);
  float* out = whole_attention(pass, a);
  for_my_heads(pass, [&](size_t s, size_t first, size_t last) {
    kernels::attention_forward(
        attention_shape(pass), qkv + s * T * 3 * C, out + s * T * C, a.logsumexp.data() + s * heads * T,
        dropout_of(pass, Purpose::kAttentionDropout, layer, s), first, last, pass.work.scratch(pass.member).attention);
  });
  pass.member.meet();
  if (!in_16_bits(pass)) return;
  const Range mine = pass.member.part(pass.rows() * C, 16);
  kernels::save_rounded(out + mine.begin, static_cast<kernels::Half*>(a.attention.data) + mine.begin, a.attention.type,
                        mine.size());
  pass.member.meet();
}

// dqkv (rows, 3C) into work.dwide, from work.dinner.
void attention_backward(const Pass& pass, const BlockActivations& a, size_t layer) {
  const Timed timed(kAttentionBackward, attention_flops(pass, 5), layer_tag(layer));
  const size_t T = pass.batch.T, C = pass.config.width, heads = pass.config.heads;
  const float *qkv = whole_qkv(pass, a), *out = whole_attention(pass, a);
  for_my_heads(pass, [&](size_t s, size_t first, size_t last) {
    kernels::attention_backward(
        attention_shape(pass), qkv + s * T * 3 * C, out + s * T * C, a.logsumexp.data() + s * heads * T,
        pass.work.dinner.data() + s * T * C, pass.work.dwide.data() + s * T * 3 * C,
        dropout_of(pass, Purpose::kAttentionDropout, layer, s), first, last, pass.work.scratch(pass.member).attention);
  });
}

// Applies the branch's dropout to its contribution to the residual stream.
void drop_delta(const Pass& pass, Purpose purpose, size_t layer) {
  pass.member.meet();
  if (pass.dropout == 0.0f) return;
  apply_dropout(pass, purpose, layer, pass.work.delta.data(), pass.work.delta.data());
  pass.member.meet();
}

// The gradient of a branch's contribution: work.dx, through the branch's dropout.
const float* branch_gradient(const Pass& pass, Purpose purpose, size_t layer) {
  if (pass.dropout == 0.0f) return pass.work.dx.data();
  apply_dropout(pass, purpose, layer, pass.work.dx.data(), pass.work.dbranch.data());
  pass.member.meet();
  return pass.work.dbranch.data();
}

// Takes work.dwide from the gradient of GELU's output to that of its input; recomputes the output into work.wide.
void gelu_backward(const Pass& pass, const SavedTensor& input, size_t layer) {
  const Timed timed(kGeluBackward, element_bytes(pass, 4 * pass.config.width, 12 + kept_bytes(pass)), layer_tag(layer));
  const Range mine = pass.member.part(pass.rows() * 4 * pass.config.width, 16);
  const SavedTensor my_input = input.at(mine.begin);
  kernels::gelu_forward_backward(my_input.data, my_input.type, pass.work.dwide.data() + mine.begin,
                                 pass.work.wide.data() + mine.begin, mine.size());
  pass.member.meet();
}

kernels::LayernormSaved rows_from(const Pass& pass, const NormActivations& saved, size_t row) {
  const SavedTensor normal = saved.normal.at(row * pass.config.width);
  return {normal.data, normal.type, saved.reciprocal.data() + row};
}

// Recomputes a norm's output into work.inner.
void norm_again(const Pass& pass, const NormRegions& regions, const Norm& norm, const NormActivations& saved,
                size_t layer) {
  const Range mine = pass.member.part(pass.rows());
  const size_t C = pass.config.width, at = mine.begin * C;
  const Timed timed(regions.forward.once_more, element_bytes(pass, C, 4 + kept_bytes(pass)), layer_tag(layer));
  kernels::layernorm_apply(saved.normal.at(at).data, saved.normal.type, norm.weight, norm.bias,
                           pass.work.inner.data() + at, mine.size(), C);
  pass.member.meet();
}

}  // namespace

void norm_forward(const Pass& pass, const TimedAs& as, const Norm& norm, const float* x, float* sum,
                  const NormActivations& saved) {
  const Range mine = pass.member.part(pass.rows());
  const size_t C = pass.config.width, at = mine.begin * C;
  const Timed timed(as.region, element_bytes(pass, C, (x == nullptr ? 8 : 16) + kept_bytes(pass)), as.layer);
  const kernels::LayernormSaved my_kept = rows_from(pass, saved, mine.begin);
  float* out = pass.work.inner.data() + at;
  if (x == nullptr) {
    kernels::layernorm_forward(sum + at, norm.weight, norm.bias, out, my_kept, mine.size(), C);
  } else {
    kernels::residual_layernorm_forward(x + at, pass.work.delta.data() + at, sum + at, norm.weight, norm.bias, out,
                                        my_kept, mine.size(), C);
  }
}

// Done by one member: rows are summed in order, and it takes less than a hundredth of a pass.
void norm_backward(const Pass& pass, const TimedAs& as, const Norm& norm, const NormSlots& slots,
                   const NormActivations& saved) {
  const Timed timed(as.region, element_bytes(pass, pass.config.width, 12 + kept_bytes(pass)), as.layer);
  const size_t C = pass.config.width, segment = pass.layout.tensors()[slots.tensor].first_segment;
  const Turn& turn = pass.batch.turn;
  if (pass.member.leads()) {
    float* gradient = pass.gradient->values().data();
    pass.gradient->enter(segment, turn, pass.member);  // the weight's ticket covers the bias too
    if (turn.first) {
      std::fill_n(gradient + slots.weight, C, 0.0f);
      std::fill_n(gradient + slots.bias, C, 0.0f);
    }
    kernels::layernorm_backward({.saved = rows_from(pass, saved, 0),
                                 .weight = norm.weight,
                                 .dout = pass.work.dinner.data(),
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
  const Timed timed(kDropout, element_bytes(pass, pass.config.width, 8), layer_tag(layer));
  const size_t n = pass.batch.T * pass.config.width;
  const Range mine = pass.member.part(n, 64);  // the unit of the random stream
  for (size_t s = 0; s < pass.batch.sequences; ++s) {
    const size_t at = s * n + mine.begin;
    kernels::dropout(dropout_of(pass, purpose, layer, s), x + at, out + at, mine.size(), mine.begin);
  }
}

void block_forward(const Pass& pass, const BlockWeights& weights, size_t layer, const BlockEnds& ends) {
  Workspace& work = pass.work;
  const BlockActivations& a = work.block(layer);
  const Member& member = pass.member;
  const auto linear = [&](const LinearRegions& regions, const Linear& w, const float* x, const LinearOut& out,
                          auto forward) {
    const Timed timed(regions.forward.of(ends.again), product_flops(pass, pass.rows(), w.in, w.out), layer_tag(layer));
    forward(w, x, out, pass.rows(), pass.gemm_scratch(), member);
  };
  float *stream = work.stream.data(), *entry = work.entry(layer), *delta = work.delta.data();
  norm_forward(pass, {kNorm1.forward.of(ends.again), layer_tag(layer)}, weights.norm1,
               ends.add_delta ? stream : nullptr, entry, a.norm1);
  member.meet();
  linear(kQkv, weights.qkv, work.inner.data(), {whole_qkv(pass, a), in_16_bits(pass) ? a.qkv : SavedTensor{}},
         linear_forward);
  member.meet();
  attention_forward(pass, a, layer, ends.again);
  linear(kProject, weights.project, whole_attention(pass, a), {delta}, linear_forward);
  drop_delta(pass, Purpose::kResidualDropout, layer);

  norm_forward(pass, {kNorm2.forward.of(ends.again), layer_tag(layer)}, weights.norm2, entry, stream, a.norm2);
  member.meet();
  linear(kExpand, weights.expand, work.inner.data(), {work.wide.data(), a.expand_input}, linear_gelu_forward);
  member.meet();
  if (!ends.output) return;
  linear(kContract, weights.contract, work.wide.data(), {delta}, linear_forward);
  drop_delta(pass, Purpose::kFeedForwardDropout, layer);
}

void block_backward(const Pass& pass, const BlockWeights& weights, size_t layer) {
  Workspace& work = pass.work;
  const BlockActivations& a = work.block(layer);
  const BlockSlots& slots = pass.layout.blocks()[layer];
  const Member& member = pass.member;
  const auto input_gradient = [&](const LinearRegions& regions, const Linear& w, const float* dy, float* dx) {
    const Timed timed(regions.input_gradient, product_flops(pass, pass.rows(), w.in, w.out), layer_tag(layer));
    linear_backward_input(pass, w, dy, dx);
  };
  const auto weight_gradient = [&](const LinearRegions& regions, const LinearSlots& s, const float* x,
                                   const float* dy) {
    const Timed timed(regions.weight_gradient, product_flops(pass, pass.rows(), s.in, s.out), layer_tag(layer));
    linear_backward_weights(pass, s, x, dy);
  };
  float *wide = work.wide.data(), *inner = work.inner.data(), *dwide = work.dwide.data(), *dinner = work.dinner.data();

  const float* d = branch_gradient(pass, Purpose::kFeedForwardDropout, layer);
  input_gradient(kContract, weights.contract, d, dwide);
  member.meet();
  gelu_backward(pass, a.expand_input, layer);
  weight_gradient(kContract, slots.contract, wide, d);
  norm_again(pass, kNorm2, weights.norm2, a.norm2, layer);
  input_gradient(kExpand, weights.expand, dwide, dinner);
  weight_gradient(kExpand, slots.expand, inner, dwide);
  member.meet();
  norm_backward(pass, {kNorm2.backward, layer_tag(layer)}, weights.norm2, slots.norm2, a.norm2);

  d = branch_gradient(pass, Purpose::kResidualDropout, layer);
  widen_attention(pass, a);
  input_gradient(kProject, weights.project, d, dinner);
  weight_gradient(kProject, slots.project, whole_attention(pass, a), d);
  member.meet();
  attention_backward(pass, a, layer);
  norm_again(pass, kNorm1, weights.norm1, a.norm1, layer);
  input_gradient(kQkv, weights.qkv, dwide, dinner);
  weight_gradient(kQkv, slots.qkv, inner, dwide);
  member.meet();
  norm_backward(pass, {kNorm1.backward, layer_tag(layer)}, weights.norm1, slots.norm1, a.norm1);
}

}  // namespace quern
