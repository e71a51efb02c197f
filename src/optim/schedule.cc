#include "optim/schedule.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace quern {

double Schedule::at(uint64_t step) const {
  if (step <= warmup) return rate * static_cast<double>(step) / static_cast<double>(warmup);
  if (kind == ScheduleKind::kConstant) return rate;
  if (step >= steps) return min_rate;
  const double done = static_cast<double>(step - warmup) / static_cast<double>(steps - warmup);
  const double left = kind == ScheduleKind::kLinear ? 1.0 - done : 0.5 * (1.0 + std::cos(std::numbers::pi * done));
  return min_rate + (rate - min_rate) * left;
}

}  // namespace quern
