// Sequences of a source of tokens, as part of a mixture.
#pragma once

#include <cstdint>
#include <memory>

#include "data/batch_source.h"
#include "data/sequence_source.h"

namespace quern::data {

// Order::kRandom: a position that depends on seed, step and sequence. kEpoch: the source has epochs of its own: its
// blocks are visited in random order, each once before any is repeated, however many sequences of other sources are
// drawn in between.
class TokenSequences final : public SequenceSource {
 public:
  // Error if the range has fewer than context + 1 tokens.
  TokenSequences(TokenRange range, const BatchOptions& options) : batches_(range, options) {}

  uint32_t context() const override { return batches_.options().context; }
  std::unique_ptr<SequenceReader> reader(const SourcePosition& position) const override;

 private:
  TrainingBatches batches_;
};

}  // namespace quern::data
