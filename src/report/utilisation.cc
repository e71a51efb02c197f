#include "report/utilisation.h"

#include <algorithm>

namespace quern::report {

void Utilisation::look_after(double elapsed) {
  if (peak_gflops_ <= 0 || !measure_ || early_looks_ >= kEarlyLooks) return;
  if (elapsed < (early_looks_ + 1) * kLookInterval) return;
  ++early_looks_;
  peak_gflops_ = std::max(peak_gflops_, measure_());
}

std::optional<double> Utilisation::share(double gflops) {
  if (peak_gflops_ <= 0) return std::nullopt;
  for (; gflops > kReachable * peak_gflops_ && measure_ && looks_ < kMaxLooks; ++looks_) {
    peak_gflops_ = std::max(peak_gflops_, measure_());
  }
  const bool is_known = gflops <= kReachable * peak_gflops_;
  peak_gflops_ = std::max(peak_gflops_, gflops);  // the machine can evidently do that much
  return is_known ? std::optional(gflops / peak_gflops_) : std::nullopt;
}

}  // namespace quern::report
