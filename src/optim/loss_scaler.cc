#include "optim/loss_scaler.h"

#include <algorithm>

namespace quern {

void LossScaler::step_done(bool overflow) {
  if (!active_) return;
  if (overflow) {
    scale_ = std::max(1.0, scale_ / 2);
    clean_steps_ = 0;
  } else if (++clean_steps_ == kCleanSteps) {
    scale_ *= 2;
    clean_steps_ = 0;
  }
}

void LossScaler::resume(double scale, uint64_t clean_steps) {
  if (!active_) return;
  scale_ = scale;
  clean_steps_ = clean_steps;
}

}  // namespace quern
