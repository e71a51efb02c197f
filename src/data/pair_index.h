// The words of BPE training, with an index of the positions of each pair of adjacent tokens.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace quern::data {

// The tokens `left` (upper half) and `right`, so that the smallest pair is the one with the smallest left token.
using TokenPair = uint64_t;

class PairIndex {
 public:
  // All words together may have at most 2^32 - 1 bytes.
  void add_word(std::span<const int32_t> tokens, uint64_t count);

  // How often the pair currently occurs, weighted by the counts of the words.
  uint64_t count(TokenPair pair) const;

  // All existing pairs.
  std::vector<TokenPair> pairs() const;

  // Replaces each occurrence of `pair` by the token `result`, from left to right. Returns the pairs that have become
  // more frequent, without duplicates.
  std::vector<TokenPair> merge(TokenPair pair, int32_t result);

 private:
  struct Symbol {
    int32_t token;  // kGone after it was merged into the previous one
    uint32_t previous;
    uint32_t next;
    uint32_t word;
  };
  struct Occurrences {
    uint64_t count = 0;
    uint64_t last_merge = 0;       // the last merge() that made it more frequent
    std::vector<uint32_t> starts;  // positions of the left token; some may be stale
  };
  // Without it, pairs of small ids would all fall into a few buckets.
  struct Hash {
    size_t operator()(TokenPair pair) const noexcept { return (pair ^ pair >> 29) * 0x9E3779B97F4A7C15u >> 20; }
  };

  TokenPair pair_at(uint32_t at) const;
  void more(uint32_t at);
  void fewer(uint32_t at);
  void merge_at(uint32_t at, int32_t result);

  std::vector<Symbol> symbols_;
  std::vector<uint64_t> counts_;  // by word
  std::unordered_map<TokenPair, Occurrences, Hash> occurrences_;
  std::vector<TokenPair> grown_;
  uint64_t merges_ = 0;
};

}  // namespace quern::data
