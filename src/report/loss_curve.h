// The loss of a run, drawn with letters.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace quern::report {

struct LossPoint {
  uint64_t step = 0;
  double loss = 0;  // may be anything
};

struct CurveOptions {
  size_t width = 80;  // columns in all; at least 40 are used
  size_t height = 16;
  bool color = false;  // with escape codes
};

// Lines that end with a line break: training as * (the mean of a column's steps) with dots from the least to the
// largest, validation as o, steps whose loss was not finite as x on the axis. The scale is that of the bulk of the
// points; a spike far above it becomes a ^ in the top line, and a line below says how high it was. Each series is in
// the order of its steps.
std::string draw_losses(const std::vector<LossPoint>& training, const std::vector<LossPoint>& validation,
                        const CurveOptions& options);

}  // namespace quern::report
