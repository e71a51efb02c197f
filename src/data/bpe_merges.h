// The merges of byte-pair encoding, and their application to a word.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace quern::data {

// Adjacent tokens `left` and `right` become `result`.
struct Merge {
  int32_t left = 0;
  int32_t right = 0;
  int32_t result = 0;

  friend bool operator==(const Merge&, const Merge&) = default;
};

// Memory that apply() reuses across words.
struct MergeScratch {
  struct Symbol {
    int32_t id;
    uint32_t previous;
    uint32_t next;
  };
  std::vector<Symbol> symbols;
  std::vector<uint64_t> queue;
};

// Merges in order of rank: lower ranks are applied first. Immutable and thread-safe.
class BpeMerges {
 public:
  static constexpr uint32_t kNone = UINT32_MAX;

  // No two merges may have the same left and right.
  explicit BpeMerges(std::vector<Merge> merges);

  std::span<const Merge> list() const noexcept { return merges_; }

  // The rank of the merge of these two tokens, or kNone.
  uint32_t rank(int32_t left, int32_t right) const noexcept;

  // Merges the tokens `word` and appends the result to `ids`. Repeatedly applies the possible merge of lowest rank, the
  // leftmost if there are several, like GPT-2. Takes O(n log n) for n tokens. Error if n is 2^31 or more.
  void apply(std::span<const int32_t> word, MergeScratch& scratch, std::vector<int32_t>& ids) const;

 private:
  struct Slot {
    uint64_t pair;
    uint32_t rank;
  };

  void apply_short(std::span<const int32_t> word, std::vector<int32_t>& ids) const;
  void load(std::span<const int32_t> word, MergeScratch& scratch) const;
  void enqueue(MergeScratch& scratch, uint32_t at) const;
  void merge_at(MergeScratch& scratch, uint32_t rank, uint32_t at) const;

  std::vector<Merge> merges_;
  std::vector<Slot> slots_;  // open addressing, at most half full
};

}  // namespace quern::data
