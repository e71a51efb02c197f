// Token embedding, with or without learned positions.
#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include "nn/declaration.h"
#include "nn/pass.h"

namespace quern::nn {

struct EmbeddingSpec {
  std::string tokens;     // name of the token table's parameter
  std::string positions;  // of the position table's; empty for none
  size_t vocabulary, context, width;
  size_t max_context = 0;  // rows of the position table
  Initial tokens_initial = Initial::normal(0.02), positions_initial = Initial::normal(0.02);
  bool trainable = true;
};

class Embedding {
 public:
  Embedding(Declaration& model, const EmbeddingSpec& spec);

  // x (rows, width) = the embedding of the batch's tokens, after dropout: this member's rows.
  void forward(const Pass& pass, float* x) const;
  // Adds work.dx, in turn, to the rows of the batch's tokens and positions. Overwrites work.dx.
  void backward(const Pass& pass) const;

  ParameterId tokens() const { return tokens_; }

 private:
  bool trains(const Pass& pass, const std::optional<ParameterId>& table) const;

  size_t width_;
  ParameterId tokens_;
  std::optional<ParameterId> positions_;
};

}  // namespace quern::nn
