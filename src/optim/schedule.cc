#include "optim/schedule.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace quern {

double Schedule::at(uint64_t step) const {
  if (step <= warmup) return rate * static_cast<double>(step) / static_cast<double>(warmup);
  if (kind == ScheduleKind::kConstant) return rate;
  if (step >= steps) return min_rate;
  const double all = static_cast<double>(steps);
  const double start = std::max(static_cast<double>(warmup), kind == ScheduleKind::kWsd ? all * (1 - cooldown) : 0.0);
  const double done = std::max(0.0, (static_cast<double>(step) - start) / (all - start));
  const double left = kind == ScheduleKind::kCosine ? 0.5 * (1.0 + std::cos(std::numbers::pi * done)) : 1.0 - done;
  return min_rate + (rate - min_rate) * left;
}

}  // namespace quern
