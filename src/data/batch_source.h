// What a step trains on and what validation reads: sequences of `context` tokens and the tokens that follow each.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "data/batch_reader.h"
#include "data/token_stream.h"

namespace quern::data {

// The stream cut in two by position: validation is its last part, held out. No training window reads a token of it.
struct Split {
  TokenRange train;
  TokenRange validation;
};

// train is the first floor(size * (1 - fraction)) tokens; 0 <= fraction < 1, else Error. Error for an empty stream.
// nanoGPT cuts its data sets in the same place.
Split split_by_position(const TokenStream& stream, double validation_fraction);

// kRandom: every sequence starts at a position drawn uniformly, with replacement, as nanoGPT does: the default, and
// what its published losses were made with. A token is seen as often as chance has it. kEpoch: the range is cut into
// blocks of `context` tokens and a pseudo-random permutation orders them, a new one for every epoch; so every block is
// seen exactly once an epoch. The tokens that do not fill a block are left out at the start or the end of the range, by
// a random shift of the cuts in every epoch.
enum class Order { kRandom, kEpoch };

struct BatchOptions {
  uint64_t seed = 0;
  uint32_t context = 0;             // tokens in a sequence
  uint32_t sequences_per_step = 0;  // of the whole optimizer step, all accumulation rounds and ranks together
  Order order = Order::kRandom;
};

// Sequence i of step s is a pure function of (seed, s, i), so any worker can fetch any sequence in any order, a resumed
// run reads what the interrupted one would have read, and 4 rounds of 4 sequences are 1 round of 16.
class TrainingBatches : public BatchSource {
 public:
  // Error when the range holds less than context + 1 tokens.
  TrainingBatches(TokenRange range, const BatchOptions& options);

  // Sequences first ... first + count - 1 of the step: inputs and targets (count, context), targets one token later.
  // first + count <= sequences_per_step. Any thread; no allocation. Error only from the stream, for a token outside the
  // vocabulary.
  void fill(uint32_t step, uint32_t first, uint32_t count, int32_t* inputs, int32_t* targets) const;

  std::unique_ptr<BatchReader> reader(const StreamPosition&) const override;

  // Position in the stream of the first input of a sequence; it reads context + 1 tokens from there.
  uint64_t position(uint32_t step, uint32_t sequence) const;

  // Steps to see every block once, rounded up. For kRandom: to see as many tokens.
  uint64_t steps_per_epoch() const;

 private:
  uint64_t random_position(uint32_t step, uint32_t sequence) const;
  uint64_t epoch_position(uint32_t step, uint32_t sequence) const;

  TokenRange range_;
  BatchOptions options_;
  uint64_t blocks_;
};

// Fixed windows, one after the other from the start of the range, without overlap: window w reads the tokens from
// begin + w * context. The same at every evaluation.
class ValidationBatches {
 public:
  // Error when the range holds less than context + 1 tokens. At most `max_windows` windows are used.
  ValidationBatches(TokenRange range, uint32_t context, uint64_t max_windows = UINT64_MAX);

  uint64_t windows() const { return windows_; }

  // Windows first ... first + count - 1, all below windows(): inputs and targets (count, context). Any thread; no
  // allocation. Error only from the stream, for a token outside the vocabulary.
  void fill(uint64_t first, uint32_t count, int32_t* inputs, int32_t* targets) const;

 private:
  TokenRange range_;
  uint32_t context_;
  uint64_t windows_;
};

}  // namespace quern::data
