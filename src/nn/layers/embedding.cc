#include "nn/layers/embedding.h"

#include <algorithm>

#include "kernels/embedding.h"
#include "nn/documents.h"
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

// One document at a time: the part of each that is in this member's rows. The norm that follows reads the same rows, so
// the members only synchronize around dropout, which splits them differently.
void Embedding::forward(const Pass& pass, float* x) const {
  const Range mine = pass.member.part(pass.rows());
  {
    const Timed timed(kEmbeddingForward, element_bytes(pass, width_, 12));
    const int32_t* tokens = pass.batch.columns.ints(kTokensColumn);
    const float* positions = positions_ ? pass.weights.at(*positions_) : nullptr;
    for_documents(pass.batch, mine.begin, mine.end, [&](const DocumentRows& part) {
      kernels::embedding_forward(tokens + part.row, pass.weights.at(tokens_), positions, x + part.row * width_,
                                 part.rows, width_, part.position);
    });
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
  const bool tokens = trains(pass, tokens_), positions = trains(pass, positions_);
  if (!pass.member.leads() || (!tokens && !positions)) return;
  const Timed timed(kEmbeddingBackward, static_cast<double>(pass.rows() * width_ * 20));
  Gradient& gradient = *pass.gradient;
  const Turn& turn = pass.batch.turn;
  if (tokens) gradient.enter_rows(tokens_, turn, pass.member);
  if (positions) gradient.enter_rows(*positions_, turn, pass.member);
  for_documents(pass.batch, 0, pass.rows(), [&](const DocumentRows& part) {
    const int32_t* ids = pass.batch.columns.ints(kTokensColumn) + part.row;
    if (tokens) gradient.touch(tokens_, {ids, part.rows});
    kernels::embedding_backward(ids, dx + part.row * width_, tokens ? gradient.rows(tokens_, turn) : nullptr,
                                positions ? gradient.rows(*positions_, turn) : nullptr, part.rows, width_);
  });
  if (positions) pass.show_gradient(*positions_);
  if (positions) gradient.leave_rows(*positions_, turn);
  if (tokens) gradient.leave_rows(tokens_, turn);
}

}  // namespace quern::nn
