#include "nn/layers/attention.h"

#include <algorithm>

#include "kernels/attention.h"
#include "kernels/attention_decode.h"
#include "kernels/convert.h"
#include "kernels/rmsnorm.h"
#include "kernels/rotary.h"

namespace quern::nn {
namespace {

// Calls visit(sequence, first_head, last_head) for each range of heads in this member's part.
template <typename Visit>
void for_my_heads(const Pass& pass, size_t heads, Visit visit) {
  const Range mine = pass.member.part(pass.batch.sequences * heads);
  for (size_t at = mine.begin; at < mine.end;) {
    const size_t s = at / heads, last = std::min(mine.end, (s + 1) * heads);
    visit(s, at - s * heads, last - s * heads);
    at = last;
  }
}

// The fp32 values of a saved tensor: the tensor itself if it is fp32, otherwise a buffer in work.wide that starts after
// width_before numbers per row.
float* fp32_view(const Pass& pass, const SavedTensor& saved, size_t width_before) {
  if (saved.type == kernels::DType::kF32) return static_cast<float*>(saved.data);
  return pass.work.wide.data() + pass.rows() * width_before;
}

// Saves this member's part of (rows, width) numbers in 16 bits and continues from the rounded values, which backward
// will read. The members synchronize.
void round(const Pass& pass, const SavedTensor& target, float* values, size_t width) {
  const Range rows = pass.member.part(pass.rows());
  const size_t first = rows.begin * width;
  kernels::save_rounded(values + first, static_cast<kernels::Half*>(target.data) + first, target.type,
                        rows.size() * width);
  pass.member.meet();
}

bool in_16_bits(const SavedTensor& saved) { return saved.type != kernels::DType::kF32; }

}  // namespace

Attention::Attention(Declaration& model, const AttentionSpec& spec)
    : name_(spec.name),
      transformed_(name_ + ".qkv"),
      width_(spec.width),
      heads_(spec.heads),
      block_(spec.block),
      qkv_(model, {.name = spec.qkv, .in = width_, .out = 3 * width_, .regions = kQkv, .block = block_, .parts = 3}),
      project_(model, {.name = spec.project,
                       .in = width_,
                       .out = width_,
                       .regions = kProject,
                       .block = block_,
                       .initial = spec.project_initial}),
      site_{Purpose::kResidualDropout, block_},
      rotary_(spec.rotary) {
  ActivationPlan& plan = model.activations;
  if (spec.qk_norm) reciprocal_ = plan.block.add(2 * heads_, kernels::DType::kF32);
  saved_qkv_ = plan.block.add(qkv_.out(), plan.storage);
  saved_out_ = plan.block.add(width_, plan.storage);
  saved_logsumexp_ = plan.block.add(heads_, kernels::DType::kF32);
  plan.need_wide(qkv_.out() + width_);  // both in fp32, if they are saved in 16 bits
  plan.attention = shape(0);
  plan.cost.products += static_cast<double>(qkv_.in() * qkv_.out() + project_.in() * project_.out());
  plan.cost.attention_width += static_cast<double>(width_);
}

kernels::AttentionShape Attention::shape(size_t T) const {
  return {.T = T, .heads = heads_, .head_dim = width_ / heads_, .qkv_stride = qkv_.out(), .out_stride = width_};
}

float* Attention::fp32_qkv(const Pass& pass, const SavedSet& saved) const {
  return fp32_view(pass, saved[saved_qkv_], 0);
}

float* Attention::fp32_out(const Pass& pass, const SavedSet& saved) const {
  return fp32_view(pass, saved[saved_out_], qkv_.out());
}

void Attention::forward(const Pass& pass, const SavedSet& saved) const {
  const SavedTensor &saved_qkv = saved[saved_qkv_], &saved_out = saved[saved_out_];
  float *qkv = fp32_qkv(pass, saved), *out = fp32_out(pass, saved);
  const bool round_now = in_16_bits(saved_qkv) && !transforms();
  qkv_.forward(pass, pass.work.inner.data(), {qkv, round_now ? saved_qkv : SavedTensor{}}, pass.rows());
  pass.member.meet();
  if (transforms()) {
    pass.show(qkv_.name(), qkv, pass.rows() * qkv_.out());
    transform(pass, saved, qkv);
  } else {
    pass.show(qkv_.name(), saved_qkv, pass.rows() * qkv_.out());
  }
  {
    const Timed timed(kAttentionForward.of(pass.again), attention_flops(pass, width_, 2), layer_tag(block_));
    if (pass.cache != nullptr) {
      attend_to_cache(pass, qkv, out);
    } else {
      attend(pass, saved, qkv, out);
    }
    pass.member.meet();
    if (in_16_bits(saved_out)) round(pass, saved_out, out, width_);
  }
  pass.show(name_, saved_out, pass.rows() * width_);
  project_.forward(pass, out, {pass.work.delta.data()}, pass.rows());
  drop_branch(pass, site_, width_);
}

// Rotates the queries and keys of this member's rows.
template <typename Rotate>
void Attention::rotate(const Pass& pass, float* qkv, Rotate rotate) const {
  if (rotary_ == nullptr) return;
  const size_t T = pass.batch.T, stride = qkv_.out();
  const kernels::RotaryShape shape{.heads = 2 * heads_, .head_dim = width_ / heads_, .stride = stride};
  const Range mine = pass.member.part(pass.rows());
  for (size_t row = mine.begin; row < mine.end;) {
    const size_t position = row % T, n = std::min(T - position, mine.end - row);
    rotate(shape, rotary_->data(), pass.batch.first_position + position, qkv + row * stride, n);
    row += n;
  }
}

// Normalizes and rotates queries and keys in place: this member's rows. The members synchronize.
void Attention::transform(const Pass& pass, const SavedSet& saved, float* qkv) const {
  const SavedTensor& target = saved[saved_qkv_];
  {
    const Timed timed(kQueriesKeysForward.of(pass.again), element_bytes(pass, 2 * width_, 8), layer_tag(block_));
    const Range mine = pass.member.part(pass.rows());
    for (size_t row = mine.begin; reciprocal_ && row < mine.end; ++row) {
      float* heads = qkv + row * qkv_.out();
      float* reciprocal = pass.gradient == nullptr ? nullptr : saved.floats(*reciprocal_) + row * 2 * heads_;
      kernels::rmsnorm_forward(heads, heads, {nullptr, kernels::DType::kF32, reciprocal}, 2 * heads_, width_ / heads_,
                               {});
    }
    rotate(pass, qkv, kernels::rotary_forward);
    if (in_16_bits(target)) {
      round(pass, target, qkv, qkv_.out());
    } else {
      pass.member.meet();
    }
  }
  pass.show(transformed_, target, pass.rows() * qkv_.out());
}

// work.dwide from the gradient of the transformed queries and keys to that of the projection: this member's rows. A
// rotation keeps scalar products, so the gradient of the norm can be computed before rotating back, from the saved
// rotated values: r (g - n mean(g n)) for n and g rotated is the rotated gradient.
void Attention::transform_backward(const Pass& pass, const SavedSet& saved) const {
  const Timed timed(kQueriesKeysBackward, element_bytes(pass, 2 * width_, 12), layer_tag(block_));
  const Range mine = pass.member.part(pass.rows());
  for (size_t row = mine.begin; reciprocal_ && row < mine.end; ++row) {
    float* gradient = pass.work.dwide.data() + row * qkv_.out();
    float* normal = fp32_qkv(pass, saved) + row * qkv_.out();
    kernels::rmsnorm_backward({.saved = {normal, kernels::DType::kF32, saved.floats(*reciprocal_) + row * 2 * heads_},
                               .dout = gradient,
                               .dx = gradient,
                               .add = false},
                              2 * heads_, width_ / heads_);
  }
  rotate(pass, pass.work.dwide.data(), kernels::rotary_backward);
}

void Attention::attend(const Pass& pass, const SavedSet& saved, const float* qkv, float* out) const {
  const size_t T = pass.batch.T;
  for_my_heads(pass, heads_, [&](size_t s, size_t first, size_t last) {
    kernels::attention_forward(
        shape(T), qkv + s * T * qkv_.out(), out + s * T * width_, saved.floats(saved_logsumexp_) + s * heads_ * T,
        dropout_of(pass, Purpose::kAttentionDropout, block_, s), first, last, pass.work.scratch(pass.member).attention);
  });
}

void Attention::attend_to_cache(const Pass& pass, const float* qkv, float* out) const {
  const kernels::NewPositions positions{pass.cache->shape, qkv, pass.batch.T, pass.batch.first_position};
  const Range heads = pass.member.part(heads_);
  float* cache = pass.cache->blocks[block_].data();
  kernels::attention_cache_store(positions, heads, cache);
  kernels::attention_decode(positions, heads, cache, out, pass.work.scratch(pass.member).attention);
}

// Both tensors from 16 bits into work.wide, for backward.
void Attention::widen(const Pass& pass, const SavedSet& saved) const {
  const SavedTensor &qkv = saved[saved_qkv_], &out = saved[saved_out_];
  if (!in_16_bits(qkv)) return;
  const Timed timed(kWiden, element_bytes(pass, qkv_.out() + width_, 4 + kernels::size_of(qkv.type)));
  const auto widen_part = [&](const SavedTensor& tensor, float* to, size_t width) {
    const Range mine = pass.member.part(pass.rows() * width, 16);
    kernels::widen(tensor.type, static_cast<const kernels::Half*>(tensor.data) + mine.begin, to + mine.begin,
                   mine.size());
  };
  widen_part(qkv, fp32_qkv(pass, saved), qkv_.out());
  widen_part(out, fp32_out(pass, saved), width_);
  pass.member.meet();
}

void Attention::backward(const Pass& pass, const SavedSet& saved, const Norm& norm) const {
  float *dinner = pass.work.dinner.data(), *dqkv = pass.work.dwide.data();
  const float* d = branch_gradient(pass, site_, width_);
  widen(pass, saved);
  project_.backward_input(pass, d, dinner, pass.rows());
  project_.backward_weights(pass, fp32_out(pass, saved), d, pass.rows());
  pass.member.meet();
  backward_attention(pass, saved);
  if (transforms()) {
    pass.member.meet();
    transform_backward(pass, saved);
  }
  norm.forward_again(pass, saved);
  qkv_.backward_input(pass, dqkv, dinner, pass.rows());
  qkv_.backward_weights(pass, pass.work.inner.data(), dqkv, pass.rows());
  pass.member.meet();
}

// work.dwide = the gradient of qkv (rows, 3C), from work.dinner.
void Attention::backward_attention(const Pass& pass, const SavedSet& saved) const {
  const Timed timed(kAttentionBackward, attention_flops(pass, width_, 5), layer_tag(block_));
  const size_t T = pass.batch.T, wide = qkv_.out();
  const float *qkv = fp32_qkv(pass, saved), *out = fp32_out(pass, saved);
  for_my_heads(pass, heads_, [&](size_t s, size_t first, size_t last) {
    kernels::attention_backward(
        shape(T), qkv + s * T * wide, out + s * T * width_, saved.floats(saved_logsumexp_) + s * heads_ * T,
        pass.work.dinner.data() + s * T * width_, pass.work.dwide.data() + s * T * wide,
        dropout_of(pass, Purpose::kAttentionDropout, block_, s), first, last, pass.work.scratch(pass.member).attention);
  });
}

}  // namespace quern::nn
