// The words of a BPE training, and where each pair of neighbouring tokens is in them.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace quern::data {

// The tokens `left` (upper half) and `right`: in this order the smallest pair is the one with the smallest left token.
using TokenPair = uint64_t;

class PairIndex {
 public:
  // At most 2^32 - 1 bytes in all words.
  void add_word(std::span<const int32_t> tokens, uint64_t count);

  // How often the two are neighbours now, each word as often as it was counted.
  uint64_t count(TokenPair pair) const;

  // Every pair there is.
  std::vector<TokenPair> pairs() const;

  // Makes each place of `pair` the token `result`, from left to right. Returns the pairs that are there more often than
  // before, each once.
  std::vector<TokenPair> merge(TokenPair pair, int32_t result);

 private:
  struct Symbol {
    int32_t token;  // kGone after it was merged into the one before it
    uint32_t previous;
    uint32_t next;
    uint32_t word;
  };
  struct Occurrences {
    uint64_t count = 0;
    uint64_t last_merge = 0;       // the last merge() that found more of it
    std::vector<uint32_t> starts;  // of the left token; some may have changed since
  };
  // The pairs of two small ids would all fall into few buckets without it.
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
