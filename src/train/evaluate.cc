#include "train/evaluate.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <vector>

namespace quern::train {
namespace {

uint64_t bytes_of(const data::Tokenizer& tokenizer, std::span<const int32_t> tokens) {
  uint64_t bytes = 0;
  for (const int32_t token : tokens) {
    if (token >= tokenizer.vocabulary_size()) continue;  // a row that only fills the table up
    if (tokenizer.end_of_text() == token) continue;      // stands between documents, is no text
    bytes += tokenizer.bytes_of(token).size();
  }
  return bytes;
}

}  // namespace

double Evaluation::perplexity() const { return std::exp(loss); }

std::optional<double> Evaluation::bits_per_byte() const {
  if (!bytes_per_token) return std::nullopt;
  return loss / std::numbers::ln2 / *bytes_per_token;
}

Evaluation evaluate(const Gpt& model, const data::ValidationBatches& windows, Workspace& work,
                    const data::Tokenizer* tokenizer) {
  const size_t T = model.config().context, at_once = work.sequences();
  std::vector<int32_t> inputs(at_once * T), targets(at_once * T);
  double loss = 0;
  uint64_t bytes = 0;
  for (uint64_t w = 0; w < windows.windows(); w += at_once) {
    const size_t n = std::min<uint64_t>(at_once, windows.windows() - w);
    windows.fill(w, static_cast<uint32_t>(n), inputs.data(), targets.data());
    loss += model.loss({.tokens = inputs.data(), .targets = targets.data(), .sequences = n, .T = T}, work);
    if (tokenizer != nullptr) bytes += bytes_of(*tokenizer, std::span(targets).first(n * T));
  }
  const uint64_t tokens = windows.windows() * T;
  Evaluation result{.loss = loss / static_cast<double>(tokens), .tokens = tokens, .bytes_per_token = {}};
  if (bytes > 0) result.bytes_per_token = static_cast<double>(bytes) / static_cast<double>(tokens);
  return result;
}

}  // namespace quern::train
