// MFU: which share of the machine's multiply-adds a run uses.
#pragma once

#include <functional>
#include <optional>
#include <utility>

namespace quern::report {

// The peak is measured before the first step, on a machine that may be doing something else at that moment; then it is
// too low, and the share too high. So it is the best of several short looks, spread over the first seconds of steps,
// and at least what any step has done; a share that no program of ours can reach makes it look again at once.
class Utilisation {
 public:
  // The register tile of the matrix product runs at 97 % of the peak while its operands are in L2
  // (docs/performance.md), and a step is less than that.
  static constexpr double kReachable = 0.97;
  static constexpr int kMaxLooks = 5;  // 20 ms each on a machine that is free, so that they cost a run nothing

  // `measure` measures the peak once more; none: it cannot be.
  explicit Utilisation(double peak_gflops = 0, std::function<double()> measure = {})
      : peak_gflops_(peak_gflops), measure_(std::move(measure)) {}

  static constexpr int kEarlyLooks = 4;
  static constexpr double kLookInterval = 1;  // seconds of steps, so that a look costs 2 % of them

  // Measures again once `elapsed` seconds of steps are kLookInterval, twice that, ... up to kEarlyLooks times. Between
  // steps.
  void look_after(double elapsed);

  // The share that `gflops` are. Between steps: measures again, a few times in the life of this, where that is more
  // than can be. None when the peak is not known: not measured, or never while the machine was free.
  std::optional<double> share(double gflops);

  double peak_gflops() const { return peak_gflops_; }  // the highest that was seen; 0: not measured

 private:
  double peak_gflops_;
  std::function<double()> measure_;
  int looks_ = 0, early_looks_ = 0;
};

}  // namespace quern::report
