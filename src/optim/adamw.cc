#include "optim/adamw.h"

namespace quern {

// The bias corrections compensate for moments that start at zero, so they count updates, not steps.
void AdamW::prepare(const Update& update) {
  step_ = {.rate = update.rate,
           .beta1 = options().beta1,
           .beta2 = options().beta2,
           .epsilon = options().epsilon,
           .step = static_cast<int64_t>(update.number)};
  step_.gradient_scale = update.gradient_scale;
}

void AdamW::apply(const nn::Segment& segment, size_t offset, size_t n, float* weights, const float* gradient) {
  kernels::AdamW step = step_;
  step.weight_decay = segment.decay ? options().weight_decay : 0.0f;
  kernels::adamw(step, weights, gradient, state(0) + offset, state(1) + offset, n);
}

}  // namespace quern
