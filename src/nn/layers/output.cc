#include "nn/layers/output.h"

#include <algorithm>

#include "kernels/cross_entropy.h"

namespace quern::nn {

Output::Output(Declaration& model, ParameterId table, float cap) : linear_(model, table, kOutput), cap_(cap) {
  declare(model);
}

Output::Output(Declaration& model, const OutputSpec& spec, float cap)
    : linear_(model, {.name = spec.name,
                      .in = spec.width,
                      .out = spec.outputs,
                      .regions = kOutput,
                      .bias = false,
                      .order = Product::kOutIn,
                      .initial = spec.initial,
                      .hidden = false}),
      cap_(cap) {
  declare(model);
}

void Output::declare(Declaration& model) const {
  model.activations.outputs = linear_.out();
  model.columns.push_back({kTargetsColumn, ColumnType::kInt32, model.activations.context});
  model.activations.cost.output_products += static_cast<double>(linear_.in()) * static_cast<double>(linear_.out());
}

// The logits before the soft cap.
void Output::project(const Pass& pass, Range rows, float* out) const {
  linear_.forward(pass, pass.work.inner.data() + rows.begin * linear_.in(), {out}, rows.size());
  pass.member.meet();
}

void Output::logits(const Pass& pass, Range rows, float* out) const {
  project(pass, rows, out);
  if (cap_ == 0.0f) return;
  const Range mine = pass.member.part(rows.size() * linear_.out(), 16);
  kernels::soft_cap(out + mine.begin, mine.size(), cap_);
  pass.member.meet();
}

// The losses of the chunk; if `gradient` is true, the gradient overwrites the logits.
void Output::losses(const Pass& pass, Range chunk, float scale, bool gradient) const {
  const size_t V = linear_.out();
  const Range mine = pass.member.part(chunk.size());
  const size_t first = chunk.begin + mine.begin;
  {
    const Timed timed(kCrossEntropy, static_cast<double>(mine.size() * V * (gradient ? 8 : 4)));
    kernels::cross_entropy(pass.work.logits.data() + mine.begin * V, V, pass.batch.columns.ints(kTargetsColumn) + first,
                           mine.size(), V, scale, pass.work.losses.data() + first, gradient, cap_);
  }
  pass.member.meet();
  pass.show("loss", pass.work.losses.data() + chunk.begin, chunk.size());
}

void Output::forward(const Pass& pass) const {
  for (size_t first = 0; first < pass.rows(); first += pass.work.output_chunk) {
    const Range chunk{first, std::min(first + pass.work.output_chunk, pass.rows())};
    project(pass, chunk, pass.work.logits.data());
    losses(pass, chunk, 1.0f, false);
  }
}

void Output::forward_backward(const Pass& pass, float scale) const {
  const size_t C = linear_.in();
  float* dlogits = pass.work.logits.data();
  for (size_t first = 0; first < pass.rows(); first += pass.work.output_chunk) {
    const Range chunk{first, std::min(first + pass.work.output_chunk, pass.rows())};
    project(pass, chunk, dlogits);
    pass.show("logits", dlogits, chunk.size() * linear_.out());
    losses(pass, chunk, scale, true);
    linear_.backward_input(pass, dlogits, pass.work.dinner.data() + first * C, chunk.size());
    linear_.backward_weights(pass, pass.work.inner.data() + first * C, dlogits, chunk.size(),
                             {.first = first == 0, .last = chunk.end == pass.rows()});
    pass.member.meet();
  }
}

}  // namespace quern::nn
