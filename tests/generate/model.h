// A small model whose logits differ much from token to token, and what a whole forward pass says they are.
#pragma once

#include <span>
#include <vector>

#include "nn/models/transformer.h"
#include "support/support.h"

namespace quern::test {

inline nn::ModelConfig small_config(size_t context = 37) {
  return {.layers = 3, .heads = 3, .width = 36, .context = context, .vocabulary = 53, .dropout = 0.3f};
}

// Weights far from their start, where the logits hang on every one.
inline void fill(nn::Model& model) {
  model.initialise(3);
  const std::vector<float> noise = normal(model.weights().values().size(), 9, 0.2f);
  for (size_t i = 0; i < noise.size(); ++i) model.weights().values()[i] += noise[i];
  model.weights().repack();
}

inline std::vector<int32_t> random_tokens(size_t n, size_t vocabulary, unsigned seed = 8) {
  std::mt19937 random(seed);
  std::vector<int32_t> tokens(n);
  for (int32_t& token : tokens) token = static_cast<int32_t>(random() % vocabulary);
  return tokens;
}

// The logits (T, V) of all positions, by nn's forward.
inline std::vector<float> whole_logits(const nn::LanguageModel& model, std::span<const int32_t> tokens) {
  const size_t T = tokens.size();
  nn::Workspace work(model.activations(), {});
  std::vector<float> logits(T * model.config().vocabulary);
  model.logits({.columns = {{kTokensColumn, tokens.data()}}, .sequences = 1, .T = T}, logits.data(), work);
  return logits;
}

// Of the last position.
inline std::vector<float> last_logits(const nn::LanguageModel& model, std::span<const int32_t> tokens) {
  const std::vector<float> all = whole_logits(model, tokens);
  return {all.end() - static_cast<ptrdiff_t>(model.config().vocabulary), all.end()};
}

}  // namespace quern::test
