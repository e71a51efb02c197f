// Sequences of a text that is read and tokenised during training.
#pragma once

#include <cstddef>
#include <cstdint>

#include "data/sequence_source.h"
#include "data/text_pieces.h"
#include "data/tokenizer.h"

namespace quern::data {

struct StreamOptions {
  uint32_t context = 0;
  size_t producers = 1;  // tokenising threads: one keeps up with any number of workers; does not affect the result
};

// Sequences are consecutive in the text: each starts with the last target of the previous one. After the last piece,
// the text starts over. Memory does not grow with the text.
class StreamSequences final : public SequenceSource {
 public:
  // `tokenizer` must outlive this object. The text must have at least one token.
  StreamSequences(TextPieces text, const Tokenizer& tokenizer, const StreamOptions& options);

  uint32_t context() const override { return options_.context; }

  // Indexed text is not read before the piece of `position`; other text is decompressed up to there. The first read
  // throws an Error if the position is not in the text.
  std::unique_ptr<SequenceReader> reader(const SourcePosition& position) const override;

 private:
  TextPieces text_;
  const Tokenizer* tokenizer_;
  StreamOptions options_;
};

}  // namespace quern::data
