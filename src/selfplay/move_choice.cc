#include "selfplay/move_choice.h"

#include <algorithm>

#include "core/portable_math.h"

namespace quern::selfplay {
namespace {

// Relative to the most visited move, so that nothing overflows at a low temperature.
double weight_of(const Edge& edge, double most, float temperature) noexcept {
  if (edge.visits == 0) return 0;
  if (temperature == 1) return edge.visits;  // exact
  return portable_exp(portable_log(static_cast<double>(edge.visits) / most) / static_cast<double>(temperature));
}

}  // namespace

size_t most_visited(std::span<const Edge> edges) noexcept {
  size_t best = 0;
  for (size_t i = 1; i < edges.size(); ++i) {
    const Edge &a = edges[i], &b = edges[best];
    if (a.visits > b.visits || (a.visits == b.visits && a.prior > b.prior)) best = i;
  }
  return best;
}

size_t draw_by_visits(std::span<const Edge> edges, float temperature, RandomWords& words) noexcept {
  const size_t most = most_visited(edges);
  const double highest = edges[most].visits;
  double sum = 0;
  for (const Edge& edge : edges) sum += weight_of(edge, highest, temperature);
  double point = words.uniform() * sum;
  for (size_t i = 0; i < edges.size(); ++i) {
    const double weight = weight_of(edges[i], highest, temperature);
    if (point < weight) return i;
    point -= weight;
  }
  return most;  // no visits, or rounding
}

}  // namespace quern::selfplay
