// MFU: the share of the machine's peak multiply-adds that a run reaches.
#pragma once

#include <functional>
#include <optional>
#include <utility>

namespace quern::report {

// The peak is measured before the first step. If the machine is busy at that moment, the peak is too low and the share
// too high. So the peak is the best of several short measurements, spread over the first seconds of steps, and at least
// the rate of any step; a share that is not reachable triggers another measurement immediately.
class Utilisation {
 public:
  // The register tile of the matrix product runs at 97 % of the peak while its operands are in L2
  // (docs/performance.md); a whole step is slower.
  static constexpr double kReachable = 0.97;
  static constexpr int kMaxLooks = 5;  // 20 ms each on an idle machine, a negligible cost

  // `measure` measures the peak again; empty if that is not possible.
  explicit Utilisation(double peak_gflops = 0, std::function<double()> measure = {})
      : peak_gflops_(peak_gflops), measure_(std::move(measure)) {}

  static constexpr int kEarlyLooks = 4;
  static constexpr double kLookInterval = 1;  // seconds of steps, so that a measurement costs 2 %

  // Measures again when `elapsed` seconds of steps reach kLookInterval, twice that, and so on, up to kEarlyLooks times.
  // Call between steps.
  void look_after(double elapsed);

  // The share of the peak that `gflops` is. If it is not reachable, measures again, at most a few times per object.
  // nullopt if the peak is unknown: not measured, or never measured while the machine was idle. Call between steps.
  std::optional<double> share(double gflops);

  double peak_gflops() const { return peak_gflops_; }  // the highest seen so far; 0: not measured

 private:
  double peak_gflops_;
  std::function<double()> measure_;
  int looks_ = 0, early_looks_ = 0;
};

}  // namespace quern::report
