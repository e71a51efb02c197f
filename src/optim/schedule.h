// The learning rate of each step.
#pragma once

#include <cstdint>

namespace quern {

enum class ScheduleKind : uint8_t { kCosine, kLinear, kConstant, kWsd };

// Rises linearly over `warmup` steps to `rate`, then falls to `min_rate` at step `steps`, or stays constant. WSD
// (warm-up, stable, decay) stays constant until the last part of the steps, `cooldown`, over which it falls linearly.
struct Schedule {
  ScheduleKind kind = ScheduleKind::kCosine;
  double rate = 1e-3;
  double min_rate = 1e-4;
  uint64_t warmup = 100;
  uint64_t steps = 1000;
  double cooldown = 0.5;  // fraction of `steps`, for WSD

  // The rate of step `step`, counted from 1. Pure, so a resumed run continues with the same rates.
  double at(uint64_t step) const;
};

}  // namespace quern
