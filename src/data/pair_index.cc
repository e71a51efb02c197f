#include "data/pair_index.h"

#include <algorithm>
#include <cassert>
#include <utility>

namespace quern::data {
namespace {

constexpr int32_t kGone = -1;
constexpr uint32_t kEnd = UINT32_MAX;

}  // namespace

void PairIndex::add_word(std::span<const int32_t> tokens, uint64_t count) {
  assert(symbols_.size() + tokens.size() < kEnd);
  const auto first = static_cast<uint32_t>(symbols_.size());
  const auto end = first + static_cast<uint32_t>(tokens.size());
  const auto word = static_cast<uint32_t>(counts_.size());
  counts_.push_back(count);
  for (uint32_t at = first; at < end; ++at) {
    symbols_.push_back({tokens[at - first], at == first ? kEnd : at - 1, at + 1 == end ? kEnd : at + 1, word});
  }
  for (uint32_t at = first; at + 1 < end; ++at) more(at);
  grown_.clear();
}

uint64_t PairIndex::count(TokenPair pair) const {
  const auto found = occurrences_.find(pair);
  return found == occurrences_.end() ? 0 : found->second.count;
}

std::vector<TokenPair> PairIndex::pairs() const {
  std::vector<TokenPair> all;
  all.reserve(occurrences_.size());
  for (const auto& [pair, occurrences] : occurrences_) all.push_back(pair);
  return all;
}

TokenPair PairIndex::pair_at(uint32_t at) const {
  const Symbol& left = symbols_[at];
  return TokenPair{static_cast<uint32_t>(left.token)} << 32 | static_cast<uint32_t>(symbols_[left.next].token);
}

void PairIndex::more(uint32_t at) {
  const TokenPair pair = pair_at(at);
  Occurrences& occurrences = occurrences_[pair];
  occurrences.count += counts_[symbols_[at].word];
  occurrences.starts.push_back(at);
  if (occurrences.last_merge != merges_ || occurrences.starts.size() == 1) grown_.push_back(pair);
  occurrences.last_merge = merges_;
}

void PairIndex::fewer(uint32_t at) { occurrences_[pair_at(at)].count -= counts_[symbols_[at].word]; }

std::vector<TokenPair> PairIndex::merge(TokenPair pair, int32_t result) {
  ++merges_;
  grown_.clear();
  std::vector<uint32_t> starts = std::exchange(occurrences_[pair].starts, {});
  // Left to right, because in a run of three equal tokens it matters which two are merged.
  if (!std::ranges::is_sorted(starts)) std::ranges::sort(starts);
  for (const uint32_t at : starts) {
    const Symbol& left = symbols_[at];
    if (left.token != kGone && left.next != kEnd && pair_at(at) == pair) merge_at(at, result);
  }
  return std::exchange(grown_, {});
}

void PairIndex::merge_at(uint32_t at, int32_t result) {
  Symbol& left = symbols_[at];
  Symbol& right = symbols_[left.next];
  fewer(at);
  if (left.previous != kEnd) fewer(left.previous);
  if (right.next != kEnd) fewer(left.next);
  left.token = result;
  left.next = right.next;
  right.token = kGone;
  if (left.next != kEnd) {
    symbols_[left.next].previous = at;
    more(at);
  }
  if (left.previous != kEnd) more(left.previous);
}

}  // namespace quern::data
