// Batches of a text that is read and tokenised while others train on it.
#pragma once

#include <cstddef>
#include <cstdint>

#include "data/batch_reader.h"
#include "data/text_pieces.h"
#include "data/tokenizer.h"

namespace quern::data {

struct StreamOptions {
  uint32_t context = 0;
  size_t producers = 1;  // threads that tokenise: one keeps up with any number of workers; changes no result
};

// The sequences follow each other in the text: each starts with the last target of the one before. After the last piece
// comes the first again. Memory does not grow with the text.
class StreamBatches final : public BatchSource {
 public:
  // `tokenizer` must outlive this. The text has at least one token.
  StreamBatches(TextPieces text, const Tokenizer& tokenizer, const StreamOptions& options);

  // Reads nothing that lies before the position's piece. Error, at the first read, for a position that is not in the
  // text.
  std::unique_ptr<BatchReader> reader(const StreamPosition& position) const override;

 private:
  TextPieces text_;
  const Tokenizer* tokenizer_;
  StreamOptions options_;
};

}  // namespace quern::data
