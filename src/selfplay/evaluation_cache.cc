#include "selfplay/evaluation_cache.h"

#include <algorithm>
#include <bit>

namespace quern::selfplay {

namespace {

// Of a cache that remembers anything.
size_t entries_for(size_t positions, size_t ways) noexcept { return std::max(std::bit_ceil(positions), ways); }
size_t priors_for(size_t entries, size_t moves) noexcept { return std::max(entries * moves, games::kMaxActions); }

}  // namespace

EvaluationCache::EvaluationCache(size_t positions, size_t moves) {
  if (positions == 0) return;
  entries_.resize(entries_for(positions, kWays));
  priors_.resize(priors_for(entries_.size(), moves));
}

size_t EvaluationCache::bytes(size_t positions, size_t moves) noexcept {
  if (positions == 0) return 0;
  const size_t entries = entries_for(positions, kWays);
  return entries * sizeof(Entry) + priors_for(entries, moves) * sizeof(float);
}

size_t EvaluationCache::bytes() const noexcept {
  return entries_.size() * sizeof(Entry) + priors_.size() * sizeof(float);
}

uint64_t EvaluationCache::key(uint64_t hash, uint64_t version) noexcept {
  uint64_t mixed = (version + 1) * 0x9E3779B97F4A7C15;
  mixed = (mixed ^ mixed >> 30) * 0xBF58476D1CE4E5B9;  // the finalizer of splitmix64
  mixed = (hash ^ mixed ^ mixed >> 27) * 0x94D049BB133111EB;
  return mixed ^ mixed >> 31;
}

bool EvaluationCache::holds(const Entry& entry, uint64_t key, size_t moves) const noexcept {
  return entry.key == key && entry.moves == moves && written_ - entry.start <= priors_.size();
}

std::span<EvaluationCache::Entry> EvaluationCache::set_of(uint64_t key) noexcept {
  return {entries_.data() + (key & (entries_.size() - 1) & ~(kWays - 1)), kWays};
}

bool EvaluationCache::find(uint64_t key, size_t moves, CachedEvaluation& found) const noexcept {
  const Entry* const set = entries_.data() + (key & (entries_.size() - 1) & ~(kWays - 1));
  for (size_t way = 0; way < kWays; ++way) {
    if (moves == 0 || !holds(set[way], key, moves)) continue;
    found = {{priors_.data() + set[way].start % priors_.size(), moves}, set[way].value};
    return true;
  }
  return false;
}

// Priors do not wrap around: what does not fit at the end of the ring starts at its beginning.
void EvaluationCache::put(uint64_t key, std::span<const float> priors, const Wdl& value) noexcept {
  if (priors.empty()) return;
  const size_t place = written_ % priors_.size();
  if (place + priors.size() > priors_.size()) written_ += priors_.size() - place;
  const std::span<Entry> set = set_of(key);
  Entry& oldest = *std::min_element(set.begin(), set.end(), [](const Entry& a, const Entry& b) {
    return a.moves == 0 ? b.moves != 0 : b.moves != 0 && a.start < b.start;
  });
  oldest = {key, written_, static_cast<uint32_t>(priors.size()), value};
  std::copy(priors.begin(), priors.end(), priors_.data() + written_ % priors_.size());
  written_ += priors.size();
}

}  // namespace quern::selfplay
