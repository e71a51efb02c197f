#include "report/utilisation.h"

#include <algorithm>

namespace quern::report {

std::optional<double> Utilisation::share(double gflops) {
  if (peak_gflops_ <= 0) return std::nullopt;
  for (; gflops > kReachable * peak_gflops_ && measure_ && looks_ < kMaxLooks; ++looks_) {
    peak_gflops_ = std::max(peak_gflops_, measure_());
  }
  if (gflops > kReachable * peak_gflops_) return std::nullopt;
  return gflops / peak_gflops_;
}

}  // namespace quern::report
