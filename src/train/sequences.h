// What a model says about token sequences that someone has in memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "nn/gpt.h"

namespace quern::train {

// `count` sequences of `T` tokens each, one after another. Borrowed.
struct Sequences {
  std::span<const int32_t> tokens;  // (count, T)
  size_t count = 0;
  size_t T = 0;
};

// The logits of every position into `out` (count, T, V), by this many threads of its own, to the same bits with any
// number of them. Error, before anything is written, when T is not 1 to the model's context or a token is not of the
// vocabulary.
void compute_logits(const Gpt& model, const Sequences& sequences, size_t threads, std::span<float> out);

// Mean loss in nats of predicting each token but the first of its sequence from those before it; windows as those of
// evaluate() give the bits of evaluate(). Error when there are no sequences, T is not 2 to the model's context + 1, or
// a token is not of the vocabulary.
double compute_loss(const Gpt& model, const Sequences& sequences, size_t threads);

}  // namespace quern::train
