// Batches of training and validation: sequences of `context` tokens, with the next token of each position as target.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include "data/batch_reader.h"
#include "data/evaluation_windows.h"
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
Split split_by_position(const TokenRange& range, double validation_fraction);  // the same for a part of a stream

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
  uint32_t source = 0;  // its index in a mixture, for random numbers of its own
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

  // The block that kEpoch visits as the index-th, counted from the first step.
  void fill_block(uint64_t index, int32_t* inputs, int32_t* targets) const;

  const BatchOptions& options() const { return options_; }

  std::vector<ColumnSpec> columns() const override { return text_columns(options_.context); }
  std::unique_ptr<BatchReader> reader(const StreamPosition&) const override;

  // Position in the stream of the first input of a sequence; it reads context + 1 tokens from there.
  uint64_t position(uint32_t step, uint32_t sequence) const;

  // Steps to see every block once, rounded up. For kRandom, steps to see as many tokens.
  uint64_t steps_per_epoch() const;

 private:
  uint64_t random_position(uint32_t step, uint32_t sequence) const;
  uint64_t block_position(uint64_t index) const;

  TokenRange range_;
  BatchOptions options_;
  uint64_t blocks_;
};

// Held-out tokens of a source, and its weight in a mixture.
struct HeldOut {
  TokenRange range;
  double weight = 1;
};

// Fixed, consecutive windows from the start of a range, without overlap: window w reads the tokens from
// begin + w * context. They are the same at every evaluation.
//
// Windows of several sources alternate in proportion to their weights, until one of them has no more. So the mean loss
// is that of the mixture, for any number of windows.
class ValidationBatches final : public EvaluationWindows {
 public:
  // Error if a range has fewer than context + 1 tokens. Uses at most `max_windows` windows.
  ValidationBatches(TokenRange range, uint32_t context, uint64_t max_windows = UINT64_MAX);
  ValidationBatches(const std::vector<HeldOut>& sources, uint32_t context, uint64_t max_windows = UINT64_MAX);

  uint64_t windows() const override { return windows_; }
  uint64_t targets() const override { return windows_ * context_; }

  // Windows first ... first + count - 1, all below windows(): inputs and targets (count, context). Thread-safe; does
  // not allocate. Error only from the stream, for a token outside the vocabulary.
  void fill(uint64_t first, uint32_t count, int32_t* inputs, int32_t* targets) const;
  void fill(uint64_t first, uint32_t count, const WindowColumns& out) const override {
    fill(first, count, out.tokens, out.targets);
  }

 private:
  void mix(const std::vector<HeldOut>& sources, uint64_t max_windows);
  TokenRange window(uint64_t index) const;

  std::vector<HeldOut> sources_;
  uint32_t context_;
  uint64_t windows_;
  std::vector<std::pair<uint32_t, uint64_t>> order_;  // source and window of each window of a mixture
};

}  // namespace quern::data
