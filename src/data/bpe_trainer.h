// Learns the merges of a byte-level BPE from text.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "data/bpe_tokenizer.h"
#include "data/pretokenizer.h"

namespace quern::data {

struct BpeTrainerOptions {
  int32_t vocabulary_size = 8192;         // with the 256 bytes and the added tokens
  uint64_t minimum_count = 2;             // a pair seen less often is not merged
  std::vector<std::string> added_tokens;  // get the last ids, in this order
};

// A vocabulary of so many tokens with kEndOfText as the last, which is where GPT-2 has it.
BpeTrainerOptions with_end_of_text(uint64_t vocabulary_size);

// The text is cut into the pieces of pretokenizer.h, and these are counted. Then, until the vocabulary is full: the
// pair of neighbours that is there most often becomes a token. Of pairs that are there equally often the one with the
// smallest left id wins, then the smallest right id. The result depends on the counts of pieces alone, not on the order
// of the texts, and is that of Hugging Face's BpeTrainer: the bytes get the ids 0 ... 255 in the order of GPT-2's
// alphabet, and the merge k gets the id 256 + k (or that of an equal token, should two merges make one).
//
// Every place of a pair is known, so a merge costs the places it changes: the whole training about n log n for n bytes
// of different pieces, even if one piece is the whole text.
class BpeTrainer {
 public:
  // Counts the pieces of `text`; a piece that is cut between two calls is two pieces. Any bytes.
  void add(std::string_view text);

  // Fewer tokens than asked for if no pair is left that is frequent enough. Error when the vocabulary cannot hold the
  // bytes and added tokens, an added token is not valid, nothing was added, or the different pieces have 2^32 bytes.
  std::unique_ptr<BpeTokenizer> train(const BpeTrainerOptions& options) const;

 private:
  struct Hash : std::hash<std::string_view> {
    using is_transparent = void;  // NOLINT(readability-identifier-naming): the standard's name
  };

  Pretokenizer pretokenizer_;
  std::unordered_map<std::string, uint64_t, Hash, std::equal_to<>> counts_;
};

}  // namespace quern::data
