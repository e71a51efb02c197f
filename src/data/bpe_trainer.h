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
  int32_t vocabulary_size = 8192;         // including the 256 bytes and the added tokens
  uint64_t minimum_count = 2;             // a pair seen less often is not merged
  std::vector<std::string> added_tokens;  // get the last ids, in this order
};

// A vocabulary of this size with kEndOfText as the last token, as in GPT-2.
BpeTrainerOptions with_end_of_text(uint64_t vocabulary_size);

// Splits the text into the pieces of pretokenizer.h and counts them. Then, until the vocabulary is full, the most
// frequent pair of adjacent tokens becomes a token. Ties are won by the smallest left id, then the smallest right id.
// The result depends only on the counts of pieces, not on the order of the texts, and equals that of Hugging Face's
// BpeTrainer: the bytes get the ids 0 ... 255 in the order of GPT-2's alphabet, and merge k gets the id 256 + k (or
// that of an equal token, if two merges produce the same one).
//
// Every position of a pair is indexed, so the cost of a merge is the number of positions it changes. Training takes
// about n log n for n bytes of different pieces, even if one piece is the whole text.
class BpeTrainer {
 public:
  // Counts the pieces of `text`, which may contain any bytes. A piece split across two calls counts as two pieces.
  void add(std::string_view text);

  // Returns fewer tokens than requested if no remaining pair is frequent enough. Error if the vocabulary is too small
  // for the bytes and added tokens, an added token is not valid, nothing was added, or the different pieces have 2^32
  // bytes.
  std::unique_ptr<BpeTokenizer> train(const BpeTrainerOptions& options) const;

 private:
  struct Hash : std::hash<std::string_view> {
    using is_transparent = void;  // NOLINT(readability-identifier-naming): the standard's name
  };

  Pretokenizer pretokenizer_;
  std::unordered_map<std::string, uint64_t, Hash, std::equal_to<>> counts_;
};

}  // namespace quern::data
