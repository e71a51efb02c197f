#include "selfplay/move_choice.h"

#include <algorithm>

#include "core/portable_math.h"

namespace quern::selfplay {
namespace {

// Which moves come into question, by their proofs.
class Candidates {
 public:
  explicit Candidates(std::span<const Edge> edges) noexcept {
    for (const Edge& edge : edges) wins_ |= edge.proof == Proof::kWin, keeps_ |= edge.proof != Proof::kLoss;
  }

  bool wins() const noexcept { return wins_; }
  bool include(const Edge& edge) const noexcept {
    return wins_ ? edge.proof == Proof::kWin : !keeps_ || edge.proof != Proof::kLoss;
  }

 private:
  bool wins_ = false, keeps_ = false;
};

// Relative to the most visited move, so that nothing overflows at a low temperature.
double weight_of(const Edge& edge, double most, float temperature) noexcept {
  if (edge.visits == 0) return 0;
  if (temperature == 1) return edge.visits;  // exact
  return portable_exp(portable_log(static_cast<double>(edge.visits) / most) / static_cast<double>(temperature));
}

}  // namespace

size_t most_visited(std::span<const Edge> edges) noexcept {
  const Candidates candidates(edges);
  const auto first = std::ranges::find_if(edges, [&](const Edge& edge) { return candidates.include(edge); });
  auto best = static_cast<size_t>(first - edges.begin());
  for (size_t i = best + 1; i < edges.size(); ++i) {
    if (!candidates.include(edges[i])) continue;
    const Edge &a = edges[i], &b = edges[best];
    if (a.visits > b.visits || (a.visits == b.visits && a.prior > b.prior)) best = i;
  }
  return best;
}

size_t most_probable(std::span<const Edge> edges) noexcept {
  return static_cast<size_t>(std::ranges::max_element(edges, {}, &Edge::prior) - edges.begin());
}

size_t draw_by_visits(std::span<const Edge> edges, float temperature, RandomWords& words) noexcept {
  const Candidates candidates(edges);
  const size_t most = most_visited(edges);
  const double highest = edges[most].visits;
  const auto weight = [&](const Edge& edge) {
    return candidates.include(edge) ? weight_of(edge, highest, temperature) : 0;
  };
  double sum = 0;
  for (const Edge& edge : edges) sum += weight(edge);
  double point = words.uniform() * sum;
  for (size_t i = 0; i < edges.size(); ++i) {
    const double width = weight(edges[i]);
    if (point < width) return i;
    point -= width;
  }
  return most;  // no visits, or rounding
}

void write_shares(std::span<const Edge> edges, std::span<float> shares) noexcept {
  const Candidates candidates(edges);
  uint32_t visits = 0, count = 0;
  for (const Edge& edge : edges) {
    if (candidates.include(edge)) visits += edge.visits, ++count;
  }
  const bool equal = candidates.wins() || visits == 0;
  for (size_t i = 0; i < edges.size(); ++i) {
    const float share =
        equal ? 1.0f / static_cast<float>(count) : static_cast<float>(edges[i].visits) / static_cast<float>(visits);
    shares[i] = candidates.include(edges[i]) ? share : 0.0f;
  }
}

}  // namespace quern::selfplay
