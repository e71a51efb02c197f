#include "data/bpe_merges.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cassert>
#include <functional>

#include "core/error.h"

namespace quern::data {
namespace {

constexpr uint64_t kEmpty = UINT64_MAX;  // not a pair: ids are not negative
constexpr uint32_t kEnd = UINT32_MAX;    // no neighbour
constexpr int32_t kGone = -1;            // a symbol that was merged into the previous one
constexpr size_t kShort = 24;            // symbols

constexpr uint64_t pair_of(int32_t left, int32_t right) {
  return uint64_t{static_cast<uint32_t>(left)} << 32 | static_cast<uint32_t>(right);
}

// Fibonacci hashing; the fold first mixes the left id into the low half.
constexpr size_t hash(uint64_t pair) {
  const uint64_t mixed = (pair ^ pair >> 29) * 0x9E3779B97F4A7C15u;
  return static_cast<size_t>(mixed >> 32);
}

}  // namespace

BpeMerges::BpeMerges(std::vector<Merge> merges)
    : merges_(std::move(merges)), slots_(std::bit_ceil(2 * merges_.size() + 2), Slot{kEmpty, kNone}) {
  const size_t mask = slots_.size() - 1;
  for (uint32_t rank = 0; rank < merges_.size(); ++rank) {
    const uint64_t pair = pair_of(merges_[rank].left, merges_[rank].right);
    size_t at = hash(pair) & mask;
    while (slots_[at].pair != kEmpty) {
      assert(slots_[at].pair != pair);
      at = (at + 1) & mask;
    }
    slots_[at] = {pair, rank};
  }
}

uint32_t BpeMerges::rank(int32_t left, int32_t right) const noexcept {
  const uint64_t pair = pair_of(left, right);
  const size_t mask = slots_.size() - 1;
  size_t at = hash(pair) & mask;
  while (slots_[at].pair != pair && slots_[at].pair != kEmpty) at = (at + 1) & mask;
  return slots_[at].rank;
}

void BpeMerges::apply(std::span<const int32_t> word, MergeScratch& scratch, std::vector<int32_t>& ids) const {
  if (word.size() <= kShort) return apply_short(word, ids);
  load(word, scratch);
  std::vector<uint64_t>& queue = scratch.queue;
  while (!queue.empty()) {
    std::ranges::pop_heap(queue, std::greater<>());
    const uint64_t first = queue.back();
    queue.pop_back();
    merge_at(scratch, static_cast<uint32_t>(first >> 32), static_cast<uint32_t>(first));
  }
  for (const MergeScratch::Symbol& symbol : scratch.symbols) {
    if (symbol.id != kGone) ids.push_back(symbol.id);
  }
}

// Searches all pairs for the lowest rank, again for each merge: for a few symbols faster than keeping a queue.
void BpeMerges::apply_short(std::span<const int32_t> word, std::vector<int32_t>& ids) const {
  std::array<int32_t, kShort> symbols{};
  std::array<uint32_t, kShort> ranks{};  // of each symbol with the next; kNone for the last
  size_t n = word.size();
  for (size_t i = 0; i < n; ++i) {
    symbols[i] = word[i];
    ranks[i] = i + 1 < n ? rank(word[i], word[i + 1]) : kNone;
  }
  while (n > 1) {
    const auto lowest = std::min_element(ranks.begin(), ranks.begin() + static_cast<ptrdiff_t>(n));
    if (*lowest == kNone) break;
    const auto at = static_cast<size_t>(lowest - ranks.begin());
    symbols[at] = merges_[*lowest].result;
    --n;
    for (size_t i = at + 1; i < n; ++i) {
      symbols[i] = symbols[i + 1];
      ranks[i] = ranks[i + 1];
    }
    ranks[at] = at + 1 < n ? rank(symbols[at], symbols[at + 1]) : kNone;
    if (at > 0) ranks[at - 1] = rank(symbols[at - 1], symbols[at]);
  }
  ids.insert(ids.end(), symbols.begin(), symbols.begin() + static_cast<ptrdiff_t>(n));
}

// The symbols form a linked list in an array; the queue is a heap of (rank, position) of every possible merge.
void BpeMerges::load(std::span<const int32_t> word, MergeScratch& scratch) const {
  if (word.size() >= uint64_t{1} << 31) {
    throw Error("[tokenizer] expected a word of less than 2^31 bytes, found {}", word.size());
  }
  const auto n = static_cast<uint32_t>(word.size());
  scratch.symbols.resize(n);
  scratch.queue.clear();
  for (uint32_t i = 0; i < n; ++i) scratch.symbols[i] = {word[i], i == 0 ? kEnd : i - 1, i + 1 == n ? kEnd : i + 1};
  for (uint32_t i = 0; i + 1 < n; ++i) {
    const uint32_t found = rank(word[i], word[i + 1]);
    if (found != kNone) scratch.queue.push_back(uint64_t{found} << 32 | i);
  }
  std::ranges::make_heap(scratch.queue, std::greater<>());
}

void BpeMerges::enqueue(MergeScratch& scratch, uint32_t at) const {
  const MergeScratch::Symbol& symbol = scratch.symbols[at];
  const uint32_t found = rank(symbol.id, scratch.symbols[symbol.next].id);
  if (found == kNone) return;
  scratch.queue.push_back(uint64_t{found} << 32 | at);
  std::ranges::push_heap(scratch.queue, std::greater<>());
}

// Does nothing if a neighbour was merged after this entry was queued: the pair now at this position has its own entry.
void BpeMerges::merge_at(MergeScratch& scratch, uint32_t rank, uint32_t at) const {
  std::vector<MergeScratch::Symbol>& symbols = scratch.symbols;
  MergeScratch::Symbol& left = symbols[at];
  const Merge& merge = merges_[rank];
  if (left.id != merge.left || left.next == kEnd || symbols[left.next].id != merge.right) return;
  MergeScratch::Symbol& right = symbols[left.next];
  left.id = merge.result;
  left.next = right.next;
  right.id = kGone;
  if (left.next != kEnd) {
    symbols[left.next].previous = at;
    enqueue(scratch, at);
  }
  if (left.previous != kEnd) enqueue(scratch, left.previous);
}

}  // namespace quern::data
