// The loss of a model on text that it does not learn from.
#pragma once

#include <cstdint>
#include <optional>

#include "data/batch_source.h"
#include "data/tokenizer.h"
#include "nn/gpt.h"

namespace quern::train {

struct Evaluation {
  double loss = 0;                        // nats per token
  uint64_t tokens = 0;                    // that were predicted
  std::optional<double> bytes_per_token;  // of their text; none without a tokenizer

  double perplexity() const;
  std::optional<double> bits_per_byte() const;  // can be compared between tokenizers; none without one
};

// Over all windows, dropout off, by this many threads; the result does not depend on how many. `tokenizer` may be
// null.
Evaluation evaluate(const Gpt& model, const data::ValidationBatches& windows, size_t threads,
                    const data::Tokenizer* tokenizer);

}  // namespace quern::train
