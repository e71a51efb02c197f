// Histogram of a tensor's values, for TensorBoard.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace quern::report {

// Bucket i has the values from limits[i - 1], or from the minimum, up to limits[i]. There are eight buckets per octave
// for either sign, and one for all values closer to 0 than 2^-24; adjacent empty buckets are merged. Values that are
// not finite are only counted in not_finite.
struct Histogram {
  double min = 0, max = 0, count = 0, sum = 0, squares = 0;
  std::vector<double> limits, counts;
  size_t not_finite = 0;
};

// Takes 3 ns per value: 2.5 ms for a model of 0.8 million parameters, 0.4 s for one of 124 million.
Histogram make_histogram(std::span<const float> values);

}  // namespace quern::report
