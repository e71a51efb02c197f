#include "selfplay/priors.h"

#include <algorithm>
#include <cmath>

#include "core/error.h"
#include "core/portable_math.h"

namespace quern::selfplay {

void write_priors(std::span<const float> logits, std::span<const games::Action> actions, std::span<float> priors) {
  float highest = -INFINITY;
  for (const games::Action action : actions) {
    if (!std::isfinite(logits[action])) {
      throw Error("[selfplay] evaluation: expected finite logits, found {} for action {}", logits[action], action);
    }
    highest = std::max(highest, logits[action]);
  }
  double sum = 0;
  for (size_t i = 0; i < actions.size(); ++i) {
    const double weight = portable_exp(static_cast<double>(logits[actions[i]]) - static_cast<double>(highest));
    priors[i] = static_cast<float>(weight);
    sum += weight;
  }
  const auto scale = static_cast<float>(1 / sum);
  for (size_t i = 0; i < actions.size(); ++i) priors[i] *= scale;
}

Wdl read_outcome(std::span<const float> outcome) {
  const float sum = outcome[0] + outcome[1] + outcome[2];
  const bool valid = std::all_of(outcome.begin(), outcome.end(), [](float p) { return p >= 0 && p <= 1; });
  if (!valid || std::abs(sum - 1) > 0.001f) {
    throw Error("[selfplay] evaluation: expected probabilities of win, draw and loss, found {}, {}, {}", outcome[0],
                outcome[1], outcome[2]);
  }
  return {outcome[0], outcome[1], outcome[2]};
}

}  // namespace quern::selfplay
