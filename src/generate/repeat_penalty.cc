#include "generate/repeat_penalty.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <limits>

namespace quern {
namespace {

constexpr int32_t kNone = -1;  // a place of the ring that no token has taken yet

float penalised(float logit, float penalty) {
  if (!std::isfinite(logit)) return logit;
  constexpr float kMax = std::numeric_limits<float>::max();
  return std::clamp(logit > 0.0f ? logit / penalty : logit * penalty, -kMax, kMax);
}

}  // namespace

RepeatPenalty::RepeatPenalty(float penalty, size_t window, size_t vocabulary) : penalty_(penalty) {
  if (!active()) return;
  window_.assign(window, kNone);
  counts_.resize(vocabulary);
  penalised_.resize(vocabulary);
}

void RepeatPenalty::count(int32_t token, int change) {
  if (token < 0 || static_cast<size_t>(token) >= counts_.size()) return;
  uint32_t& count = counts_[static_cast<size_t>(token)];
  count = window_.empty() ? 1 : count + static_cast<uint32_t>(change);
}

void RepeatPenalty::see(std::span<const int32_t> tokens) {
  if (!active()) return;
  for (const int32_t token : tokens) {
    count(token, 1);
    if (window_.empty()) continue;
    count(window_[next_], -1);
    window_[next_] = token;
    next_ = (next_ + 1) % window_.size();
  }
}

std::span<const float> RepeatPenalty::apply(std::span<const float> logits) {
  if (!active()) return logits;
  assert(logits.size() >= penalised_.size());
  for (size_t i = 0; i < penalised_.size(); ++i) {
    penalised_[i] = counts_[i] == 0 ? logits[i] : penalised(logits[i], penalty_);
  }
  return penalised_;
}

}  // namespace quern
