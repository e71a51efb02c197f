// The recent level of a run's loss, to distinguish a spike from noise.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace quern {

// Mean and variance of the losses so far: of all of them at first, then with weights that decay to 1/e over kMemory
// steps. A function of the losses alone, saved in checkpoints, so that a resumed run makes the same decisions.
struct LossTrend {
  static constexpr uint64_t kMemory = 50;
  static constexpr uint64_t kEnough = 20;  // number of losses before any is judged
  static constexpr double kNoise = 0.01;   // minimum standard deviation, as a fraction of the mean

  uint64_t count = 0;
  double mean = 0, variance = 0;

  // How many standard deviations `loss` is above the mean; 0 while there are too few losses.
  double z(double loss) const {
    if (count < kEnough) return 0;
    return (loss - mean) / std::max(std::sqrt(variance), kNoise * std::abs(mean));
  }

  // `loss` must be finite.
  void add(double loss) {
    ++count;
    const double share = 1.0 / static_cast<double>(std::min(count, kMemory)), difference = loss - mean;
    mean += share * difference;
    variance = (1 - share) * (variance + share * difference * difference);
  }

  bool operator==(const LossTrend&) const = default;
};

}  // namespace quern
