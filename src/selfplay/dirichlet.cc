#include "selfplay/dirichlet.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/portable_math.h"

namespace quern::selfplay {
namespace {

// Above 0, so that its logarithm is finite.
double open_uniform(RandomWords& words) { return words.uniform() + 0x1p-53; }

// Marsaglia's polar method, without the second number of each pair. No sine, which portable_math.h would have to have.
double draw_normal(RandomWords& words) {
  for (;;) {
    const double x = 2.0 * words.uniform() - 1.0, y = 2.0 * words.uniform() - 1.0;
    const double square = x * x + y * y;
    if (square < 1.0 && square >= 0x1p-100) return x * std::sqrt(-2.0 * portable_log(square) / square);
  }
}

// Marsaglia and Tsang, "A simple method for generating gamma variables", 2000; for shapes from 1 on.
double draw_large_gamma(double shape, RandomWords& words) {
  const double d = shape - 1.0 / 3.0, c = 1.0 / std::sqrt(9.0 * d);
  for (;;) {
    const double x = draw_normal(words), t = 1.0 + c * x;
    if (t <= 0.0) continue;
    const double v = t * t * t;
    if (portable_log(open_uniform(words)) < 0.5 * x * x + d - d * v + d * portable_log(v)) return d * v;
  }
}

}  // namespace

// A shape below 1: if g has shape + 1 and u is uniform, then g u^(1 / shape) has this shape.
double draw_gamma(double shape, RandomWords& words) {
  if (shape >= 1.0) return std::max(draw_large_gamma(shape, words), std::numeric_limits<double>::min());
  const double larger = draw_large_gamma(shape + 1.0, words);
  const double factor = portable_exp(portable_log(open_uniform(words)) / shape);
  return std::max(larger * factor, std::numeric_limits<double>::min());
}

void draw_dirichlet(double alpha, std::span<double> shares, RandomWords& words) {
  double sum = 0.0;
  for (double& share : shares) sum += share = draw_gamma(alpha, words);
  for (double& share : shares) share /= sum;
}

}  // namespace quern::selfplay
