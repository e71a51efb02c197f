#include "nn/layers/embedding.h"

#include <algorithm>

#include "kernels/embedding.h"
#include "nn/layers/dropout.h"
#include "nn/regions.h"

namespace quern::nn {

Embedding::Embedding(Declaration& model, const EmbeddingSpec& spec) : width_(spec.width) {
  const auto add_table = [&](const std::string& name, size_t rows, const Initial& initial) {
    return model.parameters.add({.name = name,
                                 .shape = {rows, width_},
                                 .initial = initial,
                                 .decay = true,
                                 .trainable = spec.trainable,
                                 .lookup = true});
  };
  tokens_ = add_table(spec.tokens, spec.vocabulary, spec.tokens_initial);
  if (!spec.positions.empty()) positions_ = add_table(spec.positions, spec.max_context, spec.positions_initial);
  model.activations.width = width_;
  model.activations.context = spec.context;
  model.columns.push_back({kTokensColumn, ColumnType::kInt32, spec.context});
}

// One sequence at a time: the part of each that is in this member's rows. The norm that follows reads the same rows, so
// the members only synchronize around dropout, which splits them differently.
void Embedding::forward(const Pass& pass, float* x) const {
  const size_t T = pass.batch.T;
  const Range mine = pass.member.part(pass.rows());
  {
    const Timed timed(kEmbeddingForward, element_bytes(pass, width_, 12));
    const int32_t* tokens = pass.batch.columns.ints(kTokensColumn);
    const float* positions = positions_ ? pass.weights.at(*positions_) : nullptr;
    for (size_t row = mine.begin; row < mine.end;) {
      const size_t position = row % T, n = std::min(T - position, mine.end - row);
      kernels::embedding_forward(tokens + row, pass.weights.at(tokens_), positions, x + row * width_, n, width_,
                                 pass.batch.first_position + position);
      row += n;
    }
  }
  if (pass.dropout != 0.0f) {
    pass.member.meet();
    apply_dropout(pass, {Purpose::kEmbeddingDropout}, width_, x, x);
    pass.member.meet();
  }
  pass.show("embedding", x, pass.rows() * width_);
}

bool Embedding::trains(const Pass& pass, const std::optional<ParameterId>& table) const {
  return table && pass.parameter(*table).trainable;
}

void Embedding::backward(const Pass& pass) const {
  float* dx = pass.work.dx.data();
  apply_dropout(pass, {Purpose::kEmbeddingDropout}, width_, dx, dx);
  pass.member.meet();
  if (!pass.member.leads()) return;
  const Timed timed(kEmbeddingBackward, static_cast<double>(pass.rows() * width_ * 20));
  const bool tokens = trains(pass, tokens_), positions = trains(pass, positions_);
  Gradient& gradient = *pass.gradient;
  const Turn& turn = pass.batch.turn;
  if (tokens) gradient.enter_rows(tokens_, turn, pass.member);
  if (positions) gradient.enter_rows(*positions_, turn, pass.member);
  for (size_t s = 0; s < pass.batch.sequences; ++s) {
    const size_t T = pass.batch.T;
    const int32_t* ids = pass.batch.columns.ints(kTokensColumn) + s * T;
    if (tokens) gradient.touch(tokens_, {ids, T});
    kernels::embedding_backward(ids, dx + s * T * width_, tokens ? gradient.rows(tokens_, turn) : nullptr,
                                positions ? gradient.rows(*positions_, turn) : nullptr, T, width_);
  }
  if (positions) pass.show_gradient(*positions_);
  if (positions) gradient.leave_rows(*positions_, turn);
  if (tokens) gradient.leave_rows(tokens_, turn);
}

}  // namespace quern::nn
