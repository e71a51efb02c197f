#include "nn/layers/policy_head.h"

#include <algorithm>

#include "kernels/soft_cross_entropy.h"

namespace quern::nn {

PolicyHead::PolicyHead(Declaration& model, const PolicyHeadSpec& spec)
    : squares_(spec.squares),
      actions_(spec.actions),
      linear_(model, {.name = spec.name,
                      .in = spec.width,
                      .out = (actions_ + squares_ - 1) / squares_,
                      .regions = kPolicy,
                      .bias = actions_ > squares_,
                      .hidden = false}),
      logits_(model.activations.head.add(linear_.out(), kernels::DType::kF32)) {
  model.activations.cost.output_products += static_cast<double>(linear_.in() * linear_.out());
  model.columns.push_back({kPolicyColumn, ColumnType::kFloat32, actions_});
}

void PolicyHead::forward(const Pass& pass) const {
  linear_.forward(pass, pass.work.inner.data(), {logits(pass)}, pass.rows());
  pass.member.meet();
  pass.show("policy logits", logits(pass), pass.rows() * linear_.out());
}

void PolicyHead::losses(const Pass& pass, Range sequences, float scale, bool gradient) const {
  const Timed timed(kCrossEntropy, static_cast<double>(sequences.size() * actions_ * (gradient ? 12 : 8)));
  float* first = logits(pass) + sequences.begin * stride();
  kernels::soft_cross_entropy({.logits = first,
                               .logit_stride = stride(),
                               .targets = pass.batch.columns.floats(kPolicyColumn) + sequences.begin * actions_,
                               .target_stride = actions_,
                               .rows = sequences.size(),
                               .V = actions_,
                               .losses = pass.work.losses.data() + sequences.begin * squares_,
                               .loss_stride = squares_,
                               .scale = scale,
                               .gradient = gradient});
  for (size_t s = 0; gradient && s < sequences.size(); ++s) {
    std::fill(first + s * stride() + actions_, first + (s + 1) * stride(), 0.0f);
  }
}

void PolicyHead::backward(const Pass& pass) const {
  linear_.backward_input(pass, logits(pass), pass.work.dinner.data(), pass.rows());
  linear_.backward_weights(pass, pass.work.inner.data(), logits(pass), pass.rows());
  pass.member.meet();
}

void PolicyHead::copy_logits(const Pass& pass, Range sequences, float* out) const {
  for (size_t s = sequences.begin; s < sequences.end; ++s) {
    std::copy_n(logits(pass) + s * stride(), actions_, out + s * actions_);
  }
}

}  // namespace quern::nn
