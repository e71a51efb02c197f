// How many values are how large: what TensorBoard draws of a tensor.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace quern::report {

// Bucket i has the values from limits[i - 1], or from the least, up to limits[i]. Buckets are eight to an octave, of
// either sign, and one for all that is nearer to 0 than 2^-24; neighbours without a value are one. Values that are not
// finite are counted apart and are in nothing else.
struct Histogram {
  double min = 0, max = 0, count = 0, sum = 0, squares = 0;
  std::vector<double> limits, counts;
  size_t not_finite = 0;
};

// 3 ns a value: 2.5 ms for a model of 0.8 million parameters, 0.4 s for one of 124 million.
Histogram make_histogram(std::span<const float> values);

}  // namespace quern::report
