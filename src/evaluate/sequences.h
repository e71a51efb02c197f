// Logits and loss of a model for token sequences in memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "nn/models/language_model.h"

namespace quern::train {

// `count` sequences of `T` tokens each, contiguous. Does not own the tokens.
struct Sequences {
  std::span<const int32_t> tokens;  // (count, T)
  size_t count = 0;
  size_t T = 0;
};

// Writes the logits of every position to `out` (count, T, V). Uses its own threads; the result is bit-identical for any
// number of them. Error, before anything is written, if T is not in 1 ... context or a token is not in the vocabulary.
void compute_logits(const nn::LanguageModel& model, const Sequences& sequences, size_t threads, std::span<float> out);

// Mean loss in nats of predicting each token, except the first of its sequence, from the preceding ones. Bit-identical
// to evaluate() on the same windows. Error if there are no sequences, T is not in 2 ... context + 1, or a token is not
// in the vocabulary.
double compute_loss(const nn::LanguageModel& model, const Sequences& sequences, size_t threads);

}  // namespace quern::train
