#include "nn/layers/value_head.h"

#include <algorithm>

#include "core/portable_math.h"
#include "kernels/column_sums.h"
#include "kernels/gelu.h"
#include "kernels/relu2.h"
#include "kernels/soft_cross_entropy.h"
#include "kernels/vector_ops.h"

namespace quern::nn {
namespace {

LinearSpec linear(const std::string& name, size_t in, size_t out) {
  return {.name = name, .in = in, .out = out, .regions = kValue, .hidden = false};
}

}  // namespace

ValueHead::ValueHead(Declaration& model, const ValueHeadSpec& spec)
    : width_(spec.width),
      squares_(spec.squares),
      activation_(spec.activation),
      weight_(spec.weight),
      hidden_(model, linear(spec.hidden, width_, width_)),
      outcome_(model, linear(spec.outcome, width_, kOutcomes)) {
  ActivationPlan& plan = model.activations;
  const auto add = [&](size_t numbers) {
    return plan.head.add((numbers + squares_ - 1) / squares_, kernels::DType::kF32);
  };
  pooled_ = add(width_);
  expanded_ = add(width_);
  active_ = add(width_);
  gradient_ = add(width_);
  logits_ = add(kOutcomes);
  plan.cost.output_products += static_cast<double>(width_ * (width_ + kOutcomes)) / static_cast<double>(squares_);
  model.columns.push_back({kOutcomeColumn, ColumnType::kFloat32, kOutcomes});
}

// Squares in order.
void ValueHead::pool(const Pass& pass) const {
  const Timed timed(kPooling, element_bytes(pass, width_, 4));
  const Range mine = pass.member.part(pass.batch.sequences);
  float* pooled = values(pass, pooled_);
  std::fill(pooled + mine.begin * width_, pooled + mine.end * width_, 0.0f);
  for (size_t s = mine.begin; s < mine.end; ++s) {
    kernels::column_sums(pass.work.inner.data() + s * squares_ * width_, width_, squares_, width_, pooled + s * width_);
  }
  kernels::scale(pooled + mine.begin * width_, 1.0f / static_cast<float>(squares_), mine.size() * width_);
  pass.member.meet();
}

void ValueHead::forward(const Pass& pass) const {
  const size_t n = pass.batch.sequences;
  pool(pass);
  pass.show("mean of squares", values(pass, pooled_), n * width_);
  const SavedTensor expanded = pass.work.head()[expanded_];
  hidden_.forward_activated(pass, values(pass, pooled_), {values(pass, active_), expanded}, n, activation_);
  pass.member.meet();
  pass.show(hidden_.name(), expanded, n * width_);
  outcome_.forward(pass, values(pass, active_), {values(pass, logits_)}, n);
  pass.member.meet();
  pass.show("outcome logits", values(pass, logits_), n * kOutcomes);
}

void ValueHead::losses(const Pass& pass, Range sequences, float scale, bool gradient) const {
  const size_t first = sequences.begin * kOutcomes;
  float* losses = pass.work.losses.data() + sequences.begin * squares_ + 1;
  kernels::soft_cross_entropy({.logits = values(pass, logits_) + first,
                               .logit_stride = kOutcomes,
                               .targets = pass.batch.columns.floats(kOutcomeColumn) + first,
                               .target_stride = kOutcomes,
                               .rows = sequences.size(),
                               .V = kOutcomes,
                               .losses = losses,
                               .loss_stride = squares_,
                               .scale = scale * weight_,
                               .gradient = gradient});
  for (size_t s = 0; s < sequences.size(); ++s) losses[s * squares_] *= weight_;
}

void ValueHead::backward(const Pass& pass) const {
  const size_t n = pass.batch.sequences;
  float *active = values(pass, active_), *gradient = values(pass, gradient_), *pooled = values(pass, pooled_);
  outcome_.backward_input(pass, values(pass, logits_), gradient, n);
  pass.member.meet();
  backward_activation(pass);
  outcome_.backward_weights(pass, active, values(pass, logits_), n);
  pass.member.meet();  // before the next one packs its operand
  hidden_.backward_weights(pass, pooled, gradient, n);
  pass.member.meet();
  hidden_.backward_input(pass, gradient, pooled, n);
  pass.member.meet();
  spread(pass);
}

// From the gradient of the activation's output to that of its input; recomputes the output.
void ValueHead::backward_activation(const Pass& pass) const {
  const Range mine = pass.member.part(pass.batch.sequences * width_, 16);
  const SavedTensor input = pass.work.head()[expanded_].at(mine.begin);
  const auto run = activation_ == Activation::kGelu ? kernels::gelu_forward_backward : kernels::relu2_forward_backward;
  run(input.data, input.type, values(pass, gradient_) + mine.begin, values(pass, active_) + mine.begin, mine.size());
  pass.member.meet();
}

// Adds the gradient of each mean to that of its squares.
void ValueHead::spread(const Pass& pass) const {
  const Timed timed(kPooling, element_bytes(pass, width_, 8));
  const Range mine = pass.member.part(pass.batch.sequences);
  float* gradient = values(pass, pooled_);
  kernels::scale(gradient + mine.begin * width_, 1.0f / static_cast<float>(squares_), mine.size() * width_);
  for (size_t row = mine.begin * squares_; row < mine.end * squares_; ++row) {
    kernels::accumulate(pass.work.dinner.data() + row * width_, gradient + row / squares_ * width_, width_);
  }
  pass.member.meet();
}

// In double precision, and rounded once. The same bits on every CPU, because search depends on them.
void ValueHead::write_probabilities(const Pass& pass, Range sequences, float* out) const {
  for (size_t s = sequences.begin; s < sequences.end; ++s) {
    const float* z = values(pass, logits_) + s * kOutcomes;
    const double top = static_cast<double>(std::max({z[0], z[1], z[2]}));
    double e[kOutcomes], sum = 0;
    for (size_t i = 0; i < kOutcomes; ++i) sum += e[i] = portable_exp(static_cast<double>(z[i]) - top);
    for (size_t i = 0; i < kOutcomes; ++i) out[s * kOutcomes + i] = static_cast<float>(e[i] / sum);
  }
}

}  // namespace quern::nn
