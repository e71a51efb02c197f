// The policy of a board network: k = ceil(actions / squares) numbers per square. The logit of action a is number a % k
// of square a / k; what is left over at the last squares belongs to no action. With one number per
// square there is no bias: it would be the same for all actions, which changes nothing.
#pragma once

#include <cstddef>
#include <string>

#include "nn/layers/linear.h"

namespace quern::nn {

struct PolicyHeadSpec {
  std::string name;
  size_t width, squares, actions;
};

class PolicyHead {
 public:
  PolicyHead(Declaration& model, const PolicyHeadSpec& spec);

  // The logits, from work.inner. The members synchronize.
  void forward(const Pass& pass) const;
  // Row 0 of work.losses of each sequence = the cross entropy with the column of policies. With `gradient`, the logits
  // are overwritten with their gradient times `scale`. Of these sequences, by the calling member alone.
  void losses(const Pass& pass, Range sequences, float scale, bool gradient) const;
  // work.dinner = the gradient of work.inner; weight gradients in turn. The members synchronize.
  void backward(const Pass& pass) const;

  // Writes the logits of the actions of these sequences to `out` (batch, actions).
  void copy_logits(const Pass& pass, Range sequences, float* out) const;

 private:
  float* logits(const Pass& pass) const { return pass.work.head().floats(logits_); }
  size_t stride() const { return squares_ * linear_.out(); }  // logits of a sequence

  size_t squares_, actions_;
  Linear linear_;
  SlotId logits_;  // (R, k)
};

}  // namespace quern::nn
