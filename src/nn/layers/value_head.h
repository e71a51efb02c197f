// The value of a board network: the mean of the squares, a hidden layer, and the logits of win, draw and loss.
#pragma once

#include <cstddef>
#include <string>

#include "nn/layers/linear.h"

namespace quern::nn {

inline constexpr size_t kOutcomes = 3;  // win, draw and loss

struct ValueHeadSpec {
  std::string hidden, outcome;  // names of the two linear layers
  size_t width, squares;
  Activation activation;
  float weight;  // of the loss
};

class ValueHead {
 public:
  ValueHead(Declaration& model, const ValueHeadSpec& spec);

  // The logits, from work.inner. The members synchronize.
  void forward(const Pass& pass) const;
  // Row 1 of work.losses of each sequence = the weighted cross entropy with the column of outcomes. With `gradient`,
  // the logits are overwritten with their gradient times `scale` and the weight. Of these sequences, by the calling
  // member alone.
  void losses(const Pass& pass, Range sequences, float scale, bool gradient) const;
  // work.dinner += the gradient of work.inner; weight gradients in turn. The members synchronize.
  void backward(const Pass& pass) const;

  // Writes the probabilities of win, draw and loss of these sequences to `out` (batch, 3).
  void write_probabilities(const Pass& pass, Range sequences, float* out) const;

 private:
  float* values(const Pass& pass, SlotId slot) const { return pass.work.head().floats(slot); }
  void pool(const Pass& pass) const;
  void backward_activation(const Pass& pass) const;
  void spread(const Pass& pass) const;

  size_t width_, squares_;
  Activation activation_;
  float weight_;
  Linear hidden_, outcome_;
  // A row for each sequence, so a square needs only its share of the width.
  SlotId pooled_;             // (sequences, width), the mean of the squares; in backward its gradient at last
  SlotId expanded_, active_;  // (sequences, width) before and after the activation
  SlotId gradient_;           // (sequences, width) of `active_` and then of `expanded_`
  SlotId logits_;             // (sequences, 3)
};

}  // namespace quern::nn
