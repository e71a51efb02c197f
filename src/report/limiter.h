// What currently limits the speed of a run.
#pragma once

#include <string_view>

#include "run/observer.h"

namespace quern::report {

// Classifies the recent steps by their measured times. The first match wins:
//
//   data      the workers were idle for a tenth of their time or more because batches were not ready
//   waiting   they waited for a tenth or more: for work, for their turn at a gradient, for each other, or for a core
//             taken by another program
//   compute   while working, they reached half of the machine's peak multiply-adds or more
//   memory    otherwise: most of the working time was spent moving data, from memory or from caches
//
// A tenth, because a well-cut step may cost that much (quern bench train requires workers to be busy for 90 %). Half,
// because arithmetic at full speed would then take as long as everything else together.
class Limiter {
 public:
  static constexpr double kWait = 0.10, kCompute = 0.50;

  // The multiply-adds per token, and the machine's peak with all threads. If the peak is 0 (unknown), compute and
  // memory are not distinguished.
  Limiter(double flops_per_token, double peak_gflops)
      : flops_per_token_(flops_per_token), peak_flops_(peak_gflops * 1e9) {}

  // Sets a more accurate peak.
  void set_peak(double peak_gflops) { peak_flops_ = peak_gflops * 1e9; }

  void add(const train::StepReport& report);
  // Empty before the first step, and instead of compute or memory if the peak is unknown.
  std::string_view name() const;

 private:
  double flops_per_token_, peak_flops_;
  // Exponentially decaying sums over steps; thread seconds are divided by the number of threads.
  double seconds_ = 0, waits_ = 0, data_ = 0, tokens_ = 0;
};

}  // namespace quern::report
