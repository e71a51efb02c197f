#include "nn/layers/feed_forward.h"

#include "kernels/gelu.h"
#include "kernels/relu2.h"
#include "kernels/swiglu.h"

namespace quern::nn {
namespace {

LinearSpec expanding(const FeedForwardSpec& spec, const std::string& name, const LinearRegions& regions) {
  return {.name = name,
          .in = spec.width,
          .out = spec.inner_width,
          .regions = regions,
          .block = spec.block,
          .bias = spec.bias,
          .order = spec.order};
}

}  // namespace

FeedForward::FeedForward(Declaration& model, const FeedForwardSpec& spec)
    : width_(spec.width),
      inner_width_(spec.inner_width),
      block_(spec.block),
      kind_(spec.kind),
      activation_(spec.activation),
      gate_(make_gate(model, spec)),
      expand_(model, expanding(spec, spec.expand, kExpand)),
      contract_(model, {.name = spec.contract,
                        .in = inner_width_,
                        .out = width_,
                        .regions = kContract,
                        .block = block_,
                        .bias = spec.bias,
                        .order = spec.order,
                        .initial = spec.contract_initial}),
      site_{Purpose::kFeedForwardDropout, block_} {
  ActivationPlan& plan = model.activations;
  if (gate_) gated_ = plan.block.add(inner_width_, plan.storage);
  expanded_ = plan.block.add(inner_width_, plan.storage);
  plan.need_wide(gate_ ? 2 * inner_width_ : inner_width_);
  const double product = static_cast<double>(width_ * inner_width_);
  plan.cost.products += (gate_ ? 3 : 2) * product;
  plan.cost.last_products += product;
}

std::optional<Linear> FeedForward::make_gate(Declaration& model, const FeedForwardSpec& spec) {
  if (spec.gate.empty()) return std::nullopt;
  return Linear(model, expanding(spec, spec.gate, kGate));
}

// work.wide = the activation.
void FeedForward::expand(const Pass& pass, const SavedSet& saved) const {
  expand_.forward_activated(pass, pass.work.inner.data(), {pass.work.wide.data(), pass.to_save(saved[expanded_])},
                            pass.rows(), kind_);
  pass.member.meet();
}

// The same with a gate. The inputs of the activation are in the saved tensors if these are fp32, otherwise in
// work.wide, where the activation replaces the gate.
void FeedForward::expand_gated(const Pass& pass, const SavedSet& saved) const {
  const SavedTensor &gated = saved[*gated_], &expanded = saved[expanded_];
  const bool fp32 = gated.type == kernels::DType::kF32;
  float* wide = pass.work.wide.data();
  float* gate = fp32 ? static_cast<float*>(gated.data) : wide;
  float* up = fp32 ? static_cast<float*>(expanded.data) : wide + values(pass);
  gate_->forward(pass, pass.work.inner.data(), {gate, fp32 ? SavedTensor{} : gated}, pass.rows());
  expand_.forward(pass, pass.work.inner.data(), {up, fp32 ? SavedTensor{} : expanded}, pass.rows());
  pass.member.meet();
  {
    const Timed timed(kGateForward.of(pass.again), element_bytes(pass, inner_width_, 12), layer_tag(block_));
    const Range mine = pass.member.part(values(pass), 16);
    kernels::swiglu_forward(gate + mine.begin, up + mine.begin, wide + mine.begin, mine.size());
  }
  pass.member.meet();
  pass.show(gate_->name(), gated, values(pass));
}

void FeedForward::forward(const Pass& pass, const SavedSet& saved, bool output) const {
  float *wide = pass.work.wide.data(), *delta = pass.work.delta.data();
  gate_ ? expand_gated(pass, saved) : expand(pass, saved);
  if (!output) return;
  pass.show(expand_.name(), saved[expanded_], values(pass));
  pass.show(activation_, wide, values(pass));
  contract_.forward(pass, wide, {delta}, pass.rows());
  drop_branch(pass, site_, width_);
  pass.show(contract_.name(), delta, pass.rows() * width_);
}

void FeedForward::backward(const Pass& pass, const SavedSet& saved, const Norm& norm) const {
  float *wide = pass.work.wide.data(), *dwide = pass.work.dwide.data();
  const float* d = branch_gradient(pass, site_, width_);
  contract_.backward_input(pass, d, dwide, pass.rows());
  pass.member.meet();
  gate_ ? backward_gated(pass, saved) : backward_activation(pass, saved[expanded_]);
  contract_.backward_weights(pass, wide, d, pass.rows());
  norm.forward_again(pass, saved);
  backward_expand(pass);
}

// work.dinner = the gradient of the branch's input, from work.dwide.
void FeedForward::backward_expand(const Pass& pass) const {
  float *inner = pass.work.inner.data(), *dinner = pass.work.dinner.data(), *dwide = pass.work.dwide.data();
  if (gate_) {
    gate_->backward_input(pass, dwide, dinner, pass.rows());
    gate_->backward_weights(pass, inner, dwide, pass.rows());
    pass.member.meet();  // before the next product packs its operand
    dwide += values(pass);
  }
  expand_.backward_input(pass, dwide, dinner, pass.rows(), gate_.has_value());
  expand_.backward_weights(pass, inner, dwide, pass.rows());
  pass.member.meet();
}

// Takes work.dwide from the gradient of the activation's output to that of its input; recomputes the output into
// work.wide.
void FeedForward::backward_activation(const Pass& pass, const SavedTensor& input) const {
  const Timed timed(kActivationBackward, element_bytes(pass, inner_width_, 12 + kernels::size_of(input.type)),
                    layer_tag(block_));
  const Range mine = pass.member.part(values(pass), 16);
  const SavedTensor my_input = input.at(mine.begin);
  const auto run = kind_ == Activation::kGelu ? kernels::gelu_forward_backward : kernels::relu2_forward_backward;
  run(my_input.data, my_input.type, pass.work.dwide.data() + mine.begin, pass.work.wide.data() + mine.begin,
      mine.size());
  pass.member.meet();
}

// The same with a gate: the gradient of the gate, followed by that of the expanded input.
void FeedForward::backward_gated(const Pass& pass, const SavedSet& saved) const {
  const SavedTensor &gated = saved[*gated_], &expanded = saved[expanded_];
  const Timed timed(kActivationBackward, element_bytes(pass, inner_width_, 16 + 2 * kernels::size_of(gated.type)),
                    layer_tag(block_));
  const Range mine = pass.member.part(values(pass), 16);
  float* dgate = pass.work.dwide.data() + mine.begin;
  kernels::swiglu_backward({.gate = gated.at(mine.begin),
                            .up = expanded.at(mine.begin),
                            .dout = dgate,
                            .dup = dgate + values(pass),
                            .out = pass.work.wide.data() + mine.begin},
                           mine.size());
  pass.member.meet();
}

}  // namespace quern::nn
