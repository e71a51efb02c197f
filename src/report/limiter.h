// What holds a run up at the moment.
#pragma once

#include <string_view>

#include "train/observer.h"

namespace quern::report {

// Of the last steps, by their measured times, in this order:
//
//   data      the workers had nothing to do for a tenth of their time or more, while batches were not there yet
//   waiting   they waited for a tenth or more: for work, for their turn at a gradient, for one another, or for a core
//             that another program had
//   compute   at work, they did half of the machine's multiply-adds or more
//   memory    else: most of the time at work went to moving numbers, from memory or from caches
//
// A tenth, because that is what a well cut step may cost (quern bench train wants workers busy for 90 %); half, because
// then arithmetic at full speed would take as long as everything else together.
class Limiter {
 public:
  static constexpr double kWait = 0.10, kCompute = 0.50;

  // The multiply-adds of a token, and the machine's peak with all threads; 0: not known, and so neither are compute and
  // memory.
  Limiter(double flops_per_token, double peak_gflops)
      : flops_per_token_(flops_per_token), peak_flops_(peak_gflops * 1e9) {}

  // Once a better one is known.
  void set_peak(double peak_gflops) { peak_flops_ = peak_gflops * 1e9; }

  void add(const train::StepReport& report);
  // Empty before the first step, and for compute or memory without a peak.
  std::string_view name() const;

 private:
  double flops_per_token_, peak_flops_;
  // Of the steps so far, older ones counting less; seconds of a thread are seconds / threads.
  double seconds_ = 0, waits_ = 0, data_ = 0, tokens_ = 0;
};

}  // namespace quern::report
