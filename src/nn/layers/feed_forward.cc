#include "nn/layers/feed_forward.h"

#include "kernels/gelu.h"
#include "kernels/relu2.h"

namespace quern::nn {

FeedForward::FeedForward(Declaration& model, const FeedForwardSpec& spec)
    : width_(spec.width),
      inner_width_(spec.inner_width),
      block_(spec.block),
      kind_(spec.kind),
      activation_(spec.activation),
      expand_(model, {.name = spec.expand, .in = width_, .out = inner_width_, .regions = kExpand, .block = block_}),
      contract_(model, {.name = spec.contract,
                        .in = inner_width_,
                        .out = width_,
                        .regions = kContract,
                        .block = block_,
                        .initial = spec.contract_initial}),
      site_{Purpose::kFeedForwardDropout, block_} {
  ActivationPlan& plan = model.activations;
  expanded_ = plan.block.add(inner_width_, plan.storage);
  plan.need_wide(inner_width_);
  const double product = static_cast<double>(width_ * inner_width_);
  plan.cost.products += 2 * product;
  plan.cost.last_products += product;
}

void FeedForward::forward(const Pass& pass, const SavedSet& saved, bool output) const {
  float *wide = pass.work.wide.data(), *delta = pass.work.delta.data();
  expand_.forward_activated(pass, pass.work.inner.data(), {wide, pass.to_save(saved[expanded_])}, pass.rows(), kind_);
  pass.member.meet();
  if (!output) return;
  pass.show(expand_.name(), saved[expanded_], pass.rows() * inner_width_);
  pass.show(activation_, wide, pass.rows() * inner_width_);
  contract_.forward(pass, wide, {delta}, pass.rows());
  drop_branch(pass, site_, width_);
  pass.show(contract_.name(), delta, pass.rows() * width_);
}

void FeedForward::backward(const Pass& pass, const SavedSet& saved, const Norm& norm) const {
  float *wide = pass.work.wide.data(), *dwide = pass.work.dwide.data();
  const float* d = branch_gradient(pass, site_, width_);
  contract_.backward_input(pass, d, dwide, pass.rows());
  pass.member.meet();
  backward_activation(pass, saved[expanded_]);
  contract_.backward_weights(pass, wide, d, pass.rows());
  norm.forward_again(pass, saved);
  expand_.backward_input(pass, dwide, pass.work.dinner.data(), pass.rows());
  expand_.backward_weights(pass, pass.work.inner.data(), dwide, pass.rows());
  pass.member.meet();
}

// Takes work.dwide from the gradient of the activation's output to that of its input; recomputes the output into
// work.wide.
void FeedForward::backward_activation(const Pass& pass, const SavedTensor& input) const {
  const Timed timed(kActivationBackward, element_bytes(pass, inner_width_, 12 + kernels::size_of(input.type)),
                    layer_tag(block_));
  const Range mine = pass.member.part(pass.rows() * inner_width_, 16);
  const SavedTensor my_input = input.at(mine.begin);
  const auto run = kind_ == Activation::kGelu ? kernels::gelu_forward_backward : kernels::relu2_forward_backward;
  run(my_input.data, my_input.type, pass.work.dwide.data() + mine.begin, pass.work.wide.data() + mine.begin,
      mine.size());
  pass.member.meet();
}

}  // namespace quern::nn
