#include "formats/rope_factors.h"

#include <cmath>
#include <numbers>

namespace quern::formats {
namespace {

using nn::RotaryConfig;

double frequency(double base, size_t j, size_t pairs) {
  return std::pow(base, -static_cast<double>(j) / static_cast<double>(pairs));
}

bool gives(const RotaryConfig& rotary, std::span<const float> factors) {
  const std::vector<float> found = rope_factors(rotary, 2 * factors.size());
  for (size_t j = 0; j < factors.size(); ++j) {
    if (!(std::abs(found[j] - factors[j]) <= 1e-5f * std::abs(factors[j]))) return false;
  }
  return true;
}

// Between the two limits, the share of the unscaled frequency is a linear function of the frequency: two points of it
// determine the limits, relative to an original context that can be chosen.
std::optional<RotaryConfig> fit(RotaryConfig rotary, std::span<const float> factors) {
  std::vector<std::pair<double, double>> points;  // periods in the original context, share
  for (size_t j = 0; j < factors.size(); ++j) {
    const double periods = static_cast<double>(rotary.original_context) * frequency(rotary.base, j, factors.size()) /
                           (2 * std::numbers::pi);
    const double share = (1.0 / double{factors[j]} - 1 / rotary.factor) / (1 - 1 / rotary.factor);
    if (share > 1e-6 && share < 1 - 1e-6) points.emplace_back(periods, share);
  }
  if (points.size() < 2) return std::nullopt;
  const auto [x0, y0] = points.front();
  const auto [x1, y1] = points.back();
  const double slope = (y0 - y1) / (x0 - x1);
  rotary.low_frequency = x0 - y0 / slope;
  rotary.high_frequency = rotary.low_frequency + 1 / slope;
  if (!(rotary.low_frequency > 1e-3 && rotary.high_frequency > rotary.low_frequency)) return std::nullopt;
  return rotary;
}

}  // namespace

std::vector<float> rope_factors(const RotaryConfig& rotary, size_t head_dim) {
  const size_t pairs = head_dim / 2;
  std::vector<float> factors(pairs, 1.0f);
  for (size_t j = 0; j < pairs; ++j) {
    const double periods =
        static_cast<double>(rotary.original_context) * frequency(rotary.base, j, pairs) / (2 * std::numbers::pi);
    if (periods > rotary.high_frequency) continue;
    const double share = periods < rotary.low_frequency
                             ? 0.0
                             : (periods - rotary.low_frequency) / (rotary.high_frequency - rotary.low_frequency);
    factors[j] = static_cast<float>(1 / ((1 - share) / rotary.factor + share));
  }
  return factors;
}

std::optional<RotaryConfig> rotary_from_factors(double base, std::span<const float> factors) {
  RotaryConfig rotary{.base = base, .scaling = nn::RotaryScaling::kLlama3};
  rotary.factor = factors.empty() ? 0.0 : double{factors.back()};  // of the lowest frequency
  if (!(rotary.factor > 1.0 && rotary.factor <= 1e6)) return std::nullopt;
  for (size_t context = 8192; context >= 512; context /= 2) {
    rotary.original_context = context;
    if (gives(rotary, factors)) return rotary;
  }
  rotary.original_context = 8192;
  const std::optional<RotaryConfig> fitted = fit(rotary, factors);
  return fitted && gives(*fitted, factors) ? fitted : std::nullopt;
}

}  // namespace quern::formats
