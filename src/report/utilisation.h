// MFU: which share of the machine's multiply-adds a run uses.
#pragma once

#include <functional>
#include <optional>
#include <utility>

namespace quern::report {

// The peak is measured before the first step, on a machine that may be doing something else at that moment; then it is
// too low, and the share too high. A share that no program of ours can reach gives it away.
class Utilisation {
 public:
  // The register tile of the matrix product runs at 97 % of the peak while its operands are in L2
  // (docs/performance.md), and a step is less than that.
  static constexpr double kReachable = 0.97;
  static constexpr int kMaxLooks = 5;  // 20 ms each on a machine that is free, so that they cost a run nothing

  // `measure` measures the peak once more; none: it cannot be.
  explicit Utilisation(double peak_gflops = 0, std::function<double()> measure = {})
      : peak_gflops_(peak_gflops), measure_(std::move(measure)) {}

  // The share that `gflops` are. Between steps: measures again, a few times in the life of this, where that is more
  // than can be. None when the peak is not known: not measured, or never while the machine was free.
  std::optional<double> share(double gflops);

  double peak_gflops() const { return peak_gflops_; }  // the highest that was seen; 0: not measured

 private:
  double peak_gflops_;
  std::function<double()> measure_;
  int looks_ = 0;
};

}  // namespace quern::report
