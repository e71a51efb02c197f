// A small model, some data, and its gradient.
#pragma once

#include <algorithm>
#include <random>
#include <vector>

#include "kernels/cross_entropy.h"
#include "nn/models/transformer.h"
#include "support/model_variants.h"
#include "support/support.h"

namespace quern::nn {

inline constexpr size_t kT = 11, kSequences = 3;

inline ModelConfig small_config(float dropout = 0.0f) {
  return {.layers = 2, .heads = 3, .width = 24, .context = 13, .vocabulary = 29, .dropout = dropout};
}

struct Data {
  Data() {
    std::mt19937 random(5);
    for (size_t i = 0; i < kSequences * kT; ++i) {
      tokens.push_back(static_cast<int32_t>(random() % 29));
      targets.push_back(static_cast<int32_t>(random() % 29));
    }
    targets[4] = kernels::kIgnoreTarget;
  }
  MicroBatch batch(size_t first = 0, size_t count = kSequences) const {
    return {.columns = {{kTokensColumn, tokens.data() + first * kT}, {kTargetsColumn, targets.data() + first * kT}},
            .sequences = count,
            .T = kT,
            .seed = 42,
            .step = 7,
            .first_sequence = static_cast<uint32_t>(20 + first)};
  }
  std::vector<int32_t> tokens, targets;
};

// Weights large enough that every gradient is.
inline void fill(Model& model) {
  model.initialise(3);
  const std::vector<float> noise = test::normal(model.weights().values().size(), 9, 0.25f);
  for (size_t i = 0; i < noise.size(); ++i) model.weights().values()[i] += noise[i];
  model.weights().repack();
}

struct Result {
  double loss;
  std::vector<float> gradient;
  bool operator==(const Result&) const = default;
};

// Forward and backward of the sequences, `at_once` of them per micro-batch, with the activations of `interval` layers
// at a time (0: of all).
inline Result run(const Model& model, const Data& data, size_t at_once = kSequences, float scale = 1.0f,
                  size_t interval = 0) {
  Gradient gradient(model.parameters());
  Workspace work(model.activations(), {.sequences = kSequences, .backward = true, .interval = interval});
  double loss = 0;
  for (size_t s = 0; s < kSequences; s += at_once) {
    MicroBatch batch = data.batch(s, std::min(at_once, kSequences - s));
    batch.turn = {.number = static_cast<uint32_t>(s / at_once), .first = s == 0, .last = s + at_once >= kSequences};
    loss += model.forward_backward(batch, {.scale = scale, .gradient = gradient}, work);
  }
  gradient.join_all();
  return {loss, {gradient.values().begin(), gradient.values().end()}};
}

}  // namespace quern::nn
