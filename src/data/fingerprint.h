// A cheap fingerprint of a token stream, to detect that a resumed run's text has changed.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "data/text_source.h"
#include "data/token_stream.h"

namespace quern::data {

struct Fingerprint {
  uint64_t tokens = 0;  // or bytes of text
  uint64_t hash = 0;
  bool operator==(const Fingerprint&) const = default;
};

// Detects accidental changes, not an adversary. Reads every token of a stream of up to 2^27 tokens. Of a longer one,
// which can be a disk full of shards, it uses the size and 4,097 pieces of 1,024 tokens, evenly spaced from start to
// end; changes between them are not detected (documented in docs/formats.md, state.json). Depends on the tokens only,
// not on how they are stored. 50M tokens take 0.1 s. Error only from the stream, for a token outside the vocabulary.
Fingerprint fingerprint(const TokenStream& stream);

inline constexpr uint64_t kFingerprintWhole = uint64_t{1} << 27;

// The same for text that is not tokenised yet, with its tokenizer (`tokenizer` is the JSON). Covers the files as they
// are, compressed or not: their sizes, their conversions and all bytes if there are up to 2^29, otherwise as many
// pieces of 4,096 bytes. Error if a file cannot be read.
Fingerprint fingerprint(const TextSources& sources, std::string_view tokenizer);

// The fingerprint of a mixture, whose sources have these sizes: the same text that is divided in another way is other
// data. That of a single source is `whole`.
Fingerprint with_sizes(const Fingerprint& whole, std::span<const uint64_t> sizes);

}  // namespace quern::data
