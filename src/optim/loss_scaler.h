// The factor by which the loss, and so every gradient that flows back, is multiplied before backward.
#pragma once

#include <cstdint>

namespace quern {

// Small gradients would vanish among the numbers that fp16 can tell apart, and large ones become infinite; the scale
// keeps them between. The optimizer divides by it. Powers of two, so that scaling by itself rounds nothing.
class LossScaler {
 public:
  static constexpr double kFirst = 65536;
  static constexpr uint64_t kCleanSteps = 1000;  // after so many without overflow the scale doubles

  // Inactive: the scale is always 1.
  explicit LossScaler(bool active) : active_(active), scale_(active ? kFirst : 1) {}

  double scale() const { return scale_; }
  uint64_t clean_steps() const { return clean_steps_; }

  // After every step. An overflow, for which the update was skipped, halves the scale, though not below 1.
  void step_done(bool overflow);

  // As it was when a checkpoint was written.
  void resume(double scale, uint64_t clean_steps);

 private:
  bool active_;
  double scale_;
  uint64_t clean_steps_ = 0;
};

}  // namespace quern
