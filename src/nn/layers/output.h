// The output projection to logits, with cross entropy, in chunks of rows: the logits of a complete batch are only
// materialized on request.
#pragma once

#include <cstddef>
#include <string>

#include "nn/layers/linear.h"

namespace quern::nn {

struct OutputSpec {
  std::string name;
  size_t width, outputs;
  Initial initial = Initial::normal(0.02);
};

// With a soft cap above 0, a logit z becomes cap * tanh(z / cap).
class Output {
 public:
  // Tied: its matrix is the rows of `table` (outputs, width), such as the token embedding.
  Output(Declaration& model, ParameterId table, float cap = 0.0f);
  // With a matrix of its own, NAME.weight (outputs, width).
  Output(Declaration& model, const OutputSpec& spec, float cap = 0.0f);

  // Writes the logits of `rows` of work.inner to `out` (rows, outputs). The members synchronize.
  void logits(const Pass& pass, Range rows, float* out) const;

  // Reads work.inner and the batch's targets; writes the loss of every row to work.losses.
  void forward(const Pass& pass) const;

  // The same, plus the gradient times `scale`: that of work.inner into work.dinner (overwritten), that of the matrix,
  // in turn, into the pass's gradient. The chunk size does not change the result: rows are independent, and sums over
  // rows continue from chunk to chunk. Rows whose targets do not count cost nothing.
  void forward_backward(const Pass& pass, float scale) const;

 private:
  void declare(Declaration& model) const;
  struct Rows;
  Rows gather(const Pass& pass) const;
  void scatter(const Pass& pass, const Rows& rows, bool gradient) const;
  void project(const Pass& pass, const float* inner, Range rows, float* out) const;
  void losses(const Pass& pass, const Rows& rows, Range chunk, float scale, bool gradient) const;

  Linear linear_;
  float cap_;
};

}  // namespace quern::nn
