#include "formats/rope_factors.h"

#include <cmath>
#include <numbers>

#include "nn/layers/rotary.h"

namespace quern::formats {
namespace {

using nn::RotaryConfig;

double frequency(double base, size_t j, size_t pairs) {
  return std::pow(base, -static_cast<double>(j) / static_cast<double>(pairs));
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
  std::vector<float> factors;
  for (size_t j = 0; j < head_dim / 2; ++j) {
    const double unscaled = nn::rotary_frequency({.base = rotary.base}, head_dim, j);
    factors.push_back(static_cast<float>(unscaled / nn::rotary_frequency(rotary, head_dim, j)));
  }
  return factors;
}

bool gives_factors(const RotaryConfig& rotary, std::span<const float> factors) {
  const std::vector<float> found = rope_factors(rotary, 2 * factors.size());
  for (size_t j = 0; j < factors.size(); ++j) {
    if (!(std::abs(found[j] - factors[j]) <= 1e-5f * std::abs(factors[j]))) return false;
  }
  return true;
}

std::optional<RotaryConfig> rotary_from_factors(double base, std::span<const float> factors) {
  RotaryConfig rotary{.base = base, .scaling = nn::RotaryScaling::kLlama3};
  rotary.factor = factors.empty() ? 0.0 : double{factors.back()};  // of the lowest frequency
  if (!(rotary.factor > 1.0 && rotary.factor <= 1e6)) return std::nullopt;
  const size_t usual = rotary.original_context;
  if (gives_factors(rotary, factors)) return rotary;
  for (size_t context = 16; context <= nn::kMaxContext; context *= 2) {
    rotary.original_context = context;
    if (gives_factors(rotary, factors)) return rotary;
  }
  rotary.original_context = usual;
  const std::optional<RotaryConfig> fitted = fit(rotary, factors);
  return fitted && gives_factors(*fitted, factors) ? fitted : std::nullopt;
}

}  // namespace quern::formats
