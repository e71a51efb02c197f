// Tells one token stream from another at little cost, for runs that go on after their text may have changed.
#pragma once

#include <cstdint>
#include <string_view>

#include "data/text_source.h"
#include "data/token_stream.h"

namespace quern::data {

struct Fingerprint {
  uint64_t tokens = 0;  // or bytes of text
  uint64_t hash = 0;
  bool operator==(const Fingerprint&) const = default;
};

// Against changes by accident, not by an adversary. Reads every token of a stream of up to 2^27; of a longer one, which
// can be a disk full of shards, its size and 4,097 pieces of 1,024 tokens, evenly spread from its start to its end:
// what changes between them is not noticed (docs/formats.md, state.json, says so). Depends on the tokens only, not on
// how they are kept. 50M tokens take 0.1 s. Error only from the stream, for a token outside the vocabulary.
Fingerprint fingerprint(const TokenStream& stream);

inline constexpr uint64_t kFingerprintWhole = uint64_t{1} << 27;

// The same for text that is not tokenised yet, and the tokenizer that it is for (`tokenizer`: its JSON): of the sizes
// of the sources and their bytes, all of up to 2^29, of more as many pieces of 4,096. Error when a file cannot be read.
Fingerprint fingerprint(const TextSources& sources, std::string_view tokenizer);

}  // namespace quern::data
