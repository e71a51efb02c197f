// The feed-forward branch of a block: expand, activation (GELU or squared ReLU), contract; or SwiGLU, where the
// activation is the product of silu(gate) and the expanded input.
#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include "nn/layers/dropout.h"
#include "nn/layers/kinds.h"
#include "nn/layers/linear.h"
#include "nn/layers/norm.h"

namespace quern::nn {

struct FeedForwardSpec {
  std::string expand, activation, contract;  // names of its parts
  std::string gate = {};                     // of the gate's linear layer; empty: without a gate
  size_t width, inner_width;
  size_t block;
  Activation kind = Activation::kGelu;  // without a gate
  Product order = Product::kInOut;      // of all matrices
  bool bias = true;                     // required without a gate
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
  static std::optional<Linear> make_gate(Declaration& model, const FeedForwardSpec& spec);
  size_t values(const Pass& pass) const { return pass.rows() * inner_width_; }
  void expand(const Pass& pass, const SavedSet& saved) const;
  void expand_gated(const Pass& pass, const SavedSet& saved) const;
  void backward_activation(const Pass& pass, const SavedTensor& input) const;
  void backward_gated(const Pass& pass, const SavedSet& saved) const;
  void backward_expand(const Pass& pass) const;

  size_t width_, inner_width_, block_;
  Activation kind_;
  std::string activation_;
  std::optional<Linear> gate_;
  Linear expand_, contract_;
  DropoutSite site_;
  std::optional<SlotId> gated_;  // (R, inner width) of the gate, before silu
  SlotId expanded_;              // (R, inner width) before the activation
};

}  // namespace quern::nn
