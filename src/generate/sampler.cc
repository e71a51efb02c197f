#include "generate/sampler.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <limits>

#include "core/error.h"
#include "core/philox.h"

namespace quern {
namespace {

// The k most likely of V tokens are found by a heap if k is at most V / kHeapShare, otherwise by nth_element. With
// 151,936 tokens and k = 40: 0.2 ms against 2.3 ms.
constexpr size_t kHeapShare = 64;

// In [0, 1), 53 bits.
double uniform(const Sampling& sampling, uint32_t index) {
  const RandomStream stream{
      .seed = sampling.seed, .purpose = Purpose::kSample, .step = index, .sequence = sampling.sample};
  const PhiloxBlock words = stream.block(0);
  return static_cast<double>((uint64_t{words[0]} << 32 | words[1]) >> 11) * 0x1p-53;
}

// The first maximum.
size_t likeliest(std::span<const float> logits) {
  size_t best = 0;
  for (size_t i = 0; i < logits.size(); ++i) {
    if (!(logits[i] < std::numeric_limits<float>::infinity())) {
      throw Error("[generate] logit of token {}: expected a finite number, found {}; the weights are unusable", i,
                  logits[i]);
    }
    if (logits[i] > logits[best]) best = i;
  }
  if (logits[best] == -std::numeric_limits<float>::infinity()) {
    throw Error("[generate] logits: expected a finite one, found none");
  }
  return best;
}

void check_repeat(const Sampling& sampling) {
  if (!(sampling.repeat_penalty > 0.0f && std::isfinite(sampling.repeat_penalty))) {
    throw Error("[generate] repeat_penalty: expected more than 0 (1 for none), found {}", sampling.repeat_penalty);
  }
  if (sampling.repeat_window > kMaxRepeatWindow) {
    throw Error("[generate] repeat_window: expected 0 (all tokens) to {}, found {}", kMaxRepeatWindow,
                sampling.repeat_window);
  }
  if (sampling.repeat_window != kDefaultRepeatWindow && sampling.repeat_penalty == 1.0f) {
    throw Error("[generate] repeat_window: expected together with a repeat_penalty other than 1, found {} without one",
                sampling.repeat_window);
  }
}

}  // namespace

void check(const Sampling& sampling) {
  if (!(sampling.temperature >= 0.0f && std::isfinite(sampling.temperature))) {
    throw Error("[generate] temperature: expected 0 or more, found {}", sampling.temperature);
  }
  if (sampling.top_k < 0) throw Error("[generate] top_k: expected 0 (all) or more, found {}", sampling.top_k);
  if (!(sampling.top_p > 0.0f && sampling.top_p <= 1.0f)) {
    throw Error("[generate] top_p: expected more than 0 and at most 1, found {}", sampling.top_p);
  }
  if (!(sampling.min_p >= 0.0f && sampling.min_p <= 1.0f)) {
    throw Error("[generate] min_p: expected 0 to 1, found {}", sampling.min_p);
  }
  check_repeat(sampling);
}

Sampler::Sampler(const Sampling& sampling, size_t vocabulary) : sampling_(sampling), candidates_(vocabulary) {
  check(sampling);
}

bool Sampler::likelier(const Candidate& a, const Candidate& b) {
  return a.logit != b.logit ? a.logit > b.logit : a.token < b.token;
}

int32_t Sampler::pick(std::span<const float> logits, uint32_t index) {
  assert(logits.size() >= candidates_.size());
  logits = logits.first(candidates_.size());
  const size_t best = likeliest(logits);
  if (sampling_.temperature == 0.0f) return static_cast<int32_t>(best);
  const std::span<Candidate> candidates = top_k(logits);
  for (Candidate& candidate : candidates) {
    const double below = static_cast<double>(candidate.logit) - static_cast<double>(logits[best]);
    candidate.weight = std::exp(below / static_cast<double>(sampling_.temperature));
  }
  return draw(min_p(top_p(candidates)), index);
}

std::span<Sampler::Candidate> Sampler::top_k(std::span<const float> logits) {
  const auto k = static_cast<size_t>(sampling_.top_k);
  if (k == 0 || k >= logits.size()) return all_of(logits);
  if (k <= logits.size() / kHeapShare) return top_of(logits, k);
  const std::span<Candidate> candidates = all_of(logits);
  std::nth_element(candidates.begin(), candidates.begin() + sampling_.top_k, candidates.end(), likelier);
  std::sort(candidates.begin(), candidates.begin() + sampling_.top_k, likelier);  // nth_element's order is unspecified
  return candidates.first(k);
}

std::span<Sampler::Candidate> Sampler::all_of(std::span<const float> logits) {
  for (size_t i = 0; i < logits.size(); ++i) candidates_[i] = {logits[i], static_cast<int32_t>(i), 0.0};
  return candidates_;
}

// By a heap with the least likely of k tokens on top, which few tokens replace. A later token with an equal logit is
// less likely than it.
std::span<Sampler::Candidate> Sampler::top_of(std::span<const float> logits, size_t k) {
  const std::span<Candidate> heap = all_of(logits.first(k)).first(k);
  std::make_heap(heap.begin(), heap.end(), likelier);
  for (size_t i = k; i < logits.size(); ++i) {
    if (!(logits[i] > heap.front().logit)) continue;
    std::pop_heap(heap.begin(), heap.end(), likelier);
    heap.back() = {logits[i], static_cast<int32_t>(i), 0.0};
    std::push_heap(heap.begin(), heap.end(), likelier);
  }
  std::sort_heap(heap.begin(), heap.end(), likelier);
  return heap;
}

// Sorts the most likely tokens first, in growing pieces: a few tokens usually hold most of the probability, and sorting
// 50,000 would take longer than a small model's forward pass.
std::span<Sampler::Candidate> Sampler::top_p(std::span<Candidate> candidates) const {
  if (sampling_.top_p == 1.0f) return candidates;
  double total = 0;
  for (const Candidate& candidate : candidates) total += candidate.weight;
  const double p = static_cast<double>(sampling_.top_p), wanted = p * total;
  // All tokens below this weight together have less than half of the probability that top_p leaves out.
  candidates = at_least(0.5 * (1.0 - p) * total / static_cast<double>(candidates.size()), candidates);
  double sum = 0;
  size_t saved = 0;
  for (size_t sorted = 0; saved < candidates.size() && sum < wanted;) {
    const auto from = candidates.begin() + static_cast<ptrdiff_t>(sorted);
    sorted = std::min(candidates.size(), std::max<size_t>(64, 4 * sorted));
    const auto to = candidates.begin() + static_cast<ptrdiff_t>(sorted);
    if (to != candidates.end()) std::nth_element(from, to, candidates.end(), likelier);
    std::sort(from, to, likelier);
    while (saved < sorted && sum < wanted) sum += candidates[saved++].weight;
  }
  return candidates.first(saved);
}

// The most likely token has the weight 1 and always stays.
std::span<Sampler::Candidate> Sampler::min_p(std::span<Candidate> candidates) const {
  return sampling_.min_p == 0.0f ? candidates : at_least(static_cast<double>(sampling_.min_p), candidates);
}

// Keeps the order.
std::span<Sampler::Candidate> Sampler::at_least(double weight, std::span<Candidate> candidates) {
  const auto end = std::remove_if(candidates.begin(), candidates.end(),
                                  [weight](const Candidate& candidate) { return candidate.weight < weight; });
  return candidates.first(static_cast<size_t>(end - candidates.begin()));
}

int32_t Sampler::draw(std::span<const Candidate> candidates, uint32_t index) const {
  double total = 0;
  for (const Candidate& candidate : candidates) total += candidate.weight;
  const double point = uniform(sampling_, index) * total;
  double sum = 0;
  int32_t token = candidates.front().token;
  for (const Candidate& candidate : candidates) {
    if (candidate.weight == 0.0) continue;
    token = candidate.token;
    sum += candidate.weight;
    if (sum > point) break;
  }
  return token;
}

}  // namespace quern
