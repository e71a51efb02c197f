// Batches of training and validation: sequences of `context` tokens, with the next token of each position as target.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "data/batch_reader.h"
#include "data/token_stream.h"

namespace quern::data {

// The stream split by position. Validation is the last part, held out: no training window reads a token of it.
struct Split {
  TokenRange train;
  TokenRange validation;
};

// train is the first floor(size * (1 - fraction)) tokens. Error unless 0 <= fraction < 1, and for an empty stream.
// nanoGPT splits its data sets at the same position.
Split split_by_position(const TokenStream& stream, double validation_fraction);

// kRandom: every sequence starts at a position drawn uniformly, with replacement, so how often a token is seen is left
// to chance. This is the default, as in nanoGPT, whose published losses were obtained with it. kEpoch: the range is cut
// into blocks of `context` tokens, which are visited in a pseudo-random order, a new one for every epoch, so every
// block is seen exactly once per epoch. Tokens that do not fill a block are omitted at the start or the end of the
// range; a random shift of the cuts in every epoch decides which.
enum class Order { kRandom, kEpoch };

struct BatchOptions {
  uint64_t seed = 0;
  uint32_t context = 0;             // tokens in a sequence
  uint32_t sequences_per_step = 0;  // of an optimizer step: all accumulation rounds and ranks together
  Order order = Order::kRandom;
  // kEpoch: the first step and the number of sequences drawn before it, from which the number of sequences before any
  // later step follows.
  uint32_t first_step = 0;
  uint64_t first_sequence = 0;
};

// Sequence i of step s is a pure function of (seed, s, i). So any worker can fetch any sequence in any order, a resumed
// run reads what the interrupted one would have read, and 4 rounds of 4 sequences equal 1 round of 16.
class TrainingBatches : public BatchSource {
 public:
  // Error if the range has fewer than context + 1 tokens.
  TrainingBatches(TokenRange range, const BatchOptions& options);

  // Sequences first ... first + count - 1 of the step: inputs and targets (count, context), targets one token later.
  // Requires first + count <= sequences_per_step. Thread-safe; does not allocate. Error only from the stream, for a
  // token outside the vocabulary.
  void fill(uint32_t step, uint32_t first, uint32_t count, int32_t* inputs, int32_t* targets) const;

  std::vector<ColumnSpec> columns() const override { return text_columns(options_.context); }
  std::unique_ptr<BatchReader> reader(const StreamPosition&) const override;

  // Position in the stream of the first input of a sequence; it reads context + 1 tokens from there.
  uint64_t position(uint32_t step, uint32_t sequence) const;

  // Steps to see every block once, rounded up. For kRandom, steps to see as many tokens.
  uint64_t steps_per_epoch() const;

 private:
  uint64_t random_position(uint32_t step, uint32_t sequence) const;
  uint64_t epoch_position(uint32_t step, uint32_t sequence) const;

  TokenRange range_;
  BatchOptions options_;
  uint64_t blocks_;
};

// Fixed, consecutive windows from the start of the range, without overlap: window w reads the tokens from
// begin + w * context. They are the same at every evaluation.
class ValidationBatches {
 public:
  // Error if the range has fewer than context + 1 tokens. Uses at most `max_windows` windows.
  ValidationBatches(TokenRange range, uint32_t context, uint64_t max_windows = UINT64_MAX);

  uint64_t windows() const { return windows_; }

  // Windows first ... first + count - 1, all below windows(): inputs and targets (count, context). Thread-safe; does
  // not allocate. Error only from the stream, for a token outside the vocabulary.
  void fill(uint64_t first, uint32_t count, int32_t* inputs, int32_t* targets) const;

 private:
  TokenRange range_;
  uint32_t context_;
  uint64_t windows_;
};

}  // namespace quern::data
