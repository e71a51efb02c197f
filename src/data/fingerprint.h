// Tells one token stream from another at little cost, for runs that go on after their text may have changed.
#pragma once

#include <cstdint>

#include "data/token_stream.h"

namespace quern::data {

struct Fingerprint {
  uint64_t tokens = 0;
  uint64_t hash = 0;
  bool operator==(const Fingerprint&) const = default;
};

// Against changes by accident, not by an adversary. Reads every token of a stream of up to 2^27; of a longer one, which
// can be a disk full of shards, its start, its end and 4,096 pieces of 1,024 tokens between, evenly spread. Depends on
// the tokens only, not on how they are kept. 50M tokens take 0.1 s. Error only from the stream, for a token outside the
// vocabulary.
Fingerprint fingerprint(const TokenStream& stream);

inline constexpr uint64_t kFingerprintWhole = uint64_t{1} << 27;

}  // namespace quern::data
