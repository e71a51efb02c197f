// Draws the loss curve of a run as text.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace quern::report {

struct LossPoint {
  uint64_t step = 0;
  double loss = 0;  // any value, also not finite
};

struct CurveOptions {
  size_t width = 80;  // total columns; at least 40 are used
  size_t height = 16;
  bool color = false;  // with escape codes
};

// Returns lines that end with a line break. Training loss is drawn as * (the mean of a column's steps) with dots from
// minimum to maximum, validation as o, and steps whose loss is not finite as x on the axis. The scale fits the bulk of
// the points; a spike far above it becomes a ^ in the top line, and the legend gives its height. Each series must be
// sorted by step.
std::string draw_losses(const std::vector<LossPoint>& training, const std::vector<LossPoint>& validation,
                        const CurveOptions& options);

// The losses of one run, for a drawing of several.
struct RunLosses {
  std::vector<LossPoint> training, validation;  // sorted by step
};

// The same for several runs, at most kMaxCurves: run i is drawn with the i-th letter, A for the mean of its training
// losses in a column and a for validation, so that no colors are needed. Where runs meet there is a +.
inline constexpr size_t kMaxCurves = 26;
std::string draw_runs(const std::vector<RunLosses>& runs, const CurveOptions& options);

}  // namespace quern::report
