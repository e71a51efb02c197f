// Where the loss of a run has been lately, to tell a spike from noise.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace quern {

// Mean and variance of the losses so far: of all of them at first, then with weights that fall to 1/e over kMemory
// steps. A function of the losses alone, kept in checkpoints, so that a resumed run judges as it would have.
struct LossTrend {
  static constexpr uint64_t kMemory = 50;
  static constexpr uint64_t kEnough = 20;  // losses before any is judged
  static constexpr double kNoise = 0.01;   // deviation that is assumed at least, as a share of the mean

  uint64_t count = 0;
  double mean = 0, variance = 0;

  // How many deviations `loss` lies above the mean; 0 while there are too few to tell.
  double z(double loss) const {
    if (count < kEnough) return 0;
    return (loss - mean) / std::max(std::sqrt(variance), kNoise * std::abs(mean));
  }

  // A finite loss.
  void add(double loss) {
    ++count;
    const double share = 1.0 / static_cast<double>(std::min(count, kMemory)), difference = loss - mean;
    mean += share * difference;
    variance = (1 - share) * (variance + share * difference * difference);
  }

  bool operator==(const LossTrend&) const = default;
};

}  // namespace quern
