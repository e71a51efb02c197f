// The feed-forward branch of a block: expand, activation (GELU or squared ReLU), contract.
#pragma once

#include <cstddef>
#include <string>

#include "nn/layers/dropout.h"
#include "nn/layers/kinds.h"
#include "nn/layers/linear.h"
#include "nn/layers/norm.h"

namespace quern::nn {

struct FeedForwardSpec {
  std::string expand, activation, contract;  // names of its parts
  size_t width, inner_width;
  size_t block;
  Activation kind = Activation::kGelu;
  Initial contract_initial = Initial::normal(0.02);
};

class FeedForward {
 public:
  FeedForward(Declaration& model, const FeedForwardSpec& spec);

  // work.delta = the branch's output, from work.inner. The members synchronize. Without `output`, computes only what
  // backward needs.
  void forward(const Pass& pass, const SavedSet& saved, bool output) const;
  // work.dinner = the gradient of the branch's input, from work.dx. Weight gradients in turn. The branch's input is the
  // output of `norm`, which is recomputed. Overwrites work.wide and work.dwide. The members synchronize.
  void backward(const Pass& pass, const SavedSet& saved, const Norm& norm) const;

 private:
  void backward_activation(const Pass& pass, const SavedTensor& input) const;

  size_t width_, inner_width_, block_;
  Activation kind_;
  std::string activation_;
  Linear expand_, contract_;
  DropoutSite site_;
  SlotId expanded_;  // (R, inner width) before the activation
};

}  // namespace quern::nn
