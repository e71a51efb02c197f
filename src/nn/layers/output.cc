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
void Output::project(const Pass& pass, const float* inner, Range rows, float* out) const {
  linear_.forward(pass, inner + rows.begin * linear_.in(), {out}, rows.size());
  pass.member.meet();
}

void Output::logits(const Pass& pass, Range rows, float* out) const {
  project(pass, pass.work.inner.data(), rows, out);
  if (cap_ == 0.0f) return;
  const Range mine = pass.member.part(rows.size() * linear_.out(), 16);
  kernels::soft_cap(out + mine.begin, mine.size(), cap_);
  pass.member.meet();
}

// Where a pass finds the rows that count: all rows, in place, or copies of those whose targets count. Of a
// conversation, half of the rows often do not, and the output is a fifth of the work of a small model with a large
// vocabulary.
struct Output::Rows {
  size_t count;
  float* inner;  // (count, width)
  float* dinner;
  const int32_t* targets;
  float* losses;
  bool copied;
};

// The copies use memory that holds nothing between the final norm and its backward pass. The members synchronize.
Output::Rows Output::gather(const Pass& pass) const {
  Workspace& work = pass.work;
  const int32_t* targets = pass.batch.columns.ints(kTargetsColumn);
  const size_t rows = pass.rows(), C = linear_.in();
  const auto count = rows - static_cast<size_t>(std::count(targets, targets + rows, kernels::kIgnoreTarget));
  if (count == rows) return {rows, work.inner.data(), work.dinner.data(), targets, work.losses.data(), false};
  if (pass.member.leads()) {
    for (size_t row = 0, n = 0; row < rows; ++row) {
      if (targets[row] == kernels::kIgnoreTarget) continue;
      work.counted_rows[n] = static_cast<int32_t>(row);
      work.counted_targets[n++] = targets[row];
    }
  }
  pass.member.meet();
  const Range mine = pass.member.part(count);
  for (size_t i = mine.begin; i < mine.end; ++i) {
    std::copy_n(work.inner.data() + static_cast<size_t>(work.counted_rows[i]) * C, C, work.stream.data() + i * C);
  }
  pass.member.meet();
  return {count, work.stream.data(), work.dx.data(), work.counted_targets.data(), work.counted_losses.data(), true};
}

// Puts losses and, if `gradient` is true, gradients of copied rows where they belong; those of other rows are 0. The
// members synchronize.
void Output::scatter(const Pass& pass, const Rows& rows, bool gradient) const {
  if (!rows.copied) return;
  Workspace& work = pass.work;
  const size_t C = linear_.in();
  pass.member.meet();
  const Range mine = pass.member.part(pass.rows());
  std::fill_n(work.losses.data() + mine.begin, mine.size(), 0.0f);
  if (gradient) std::fill_n(work.dinner.data() + mine.begin * C, mine.size() * C, 0.0f);
  for (size_t i = 0; i < rows.count; ++i) {
    const auto row = static_cast<size_t>(work.counted_rows[i]);
    if (row < mine.begin || row >= mine.end) continue;
    work.losses[row] = rows.losses[i];
    if (gradient) std::copy_n(rows.dinner + i * C, C, work.dinner.data() + row * C);
  }
  pass.member.meet();
}

// The losses of a chunk; if `gradient` is true, the gradient overwrites the logits.
void Output::losses(const Pass& pass, const Rows& rows, Range chunk, float scale, bool gradient) const {
  const size_t V = linear_.out();
  const Range mine = pass.member.part(chunk.size());
  const size_t first = chunk.begin + mine.begin;
  {
    const Timed timed(kCrossEntropy, static_cast<double>(mine.size() * V * (gradient ? 8 : 4)));
    kernels::cross_entropy(pass.work.logits.data() + mine.begin * V, V, rows.targets + first, mine.size(), V, scale,
                           rows.losses + first, gradient, cap_);
  }
  pass.member.meet();
  pass.show("loss", rows.losses + chunk.begin, chunk.size());
}

void Output::forward(const Pass& pass) const {
  const Rows rows = gather(pass);
  for (size_t first = 0; first < rows.count; first += pass.work.output_chunk) {
    const Range chunk{first, std::min(first + pass.work.output_chunk, rows.count)};
    project(pass, rows.inner, chunk, pass.work.logits.data());
    losses(pass, rows, chunk, 1.0f, false);
  }
  scatter(pass, rows, false);
}

void Output::forward_backward(const Pass& pass, float scale) const {
  const size_t C = linear_.in();
  float* dlogits = pass.work.logits.data();
  const Rows rows = gather(pass);
  for (size_t first = 0; first < rows.count; first += pass.work.output_chunk) {
    const Range chunk{first, std::min(first + pass.work.output_chunk, rows.count)};
    project(pass, rows.inner, chunk, dlogits);
    pass.show("logits", dlogits, chunk.size() * linear_.out());
    losses(pass, rows, chunk, scale, true);
    linear_.backward_input(pass, dlogits, rows.dinner + first * C, chunk.size());
    linear_.backward_weights(pass, rows.inner + first * C, dlogits, chunk.size(),
                             {.first = first == 0, .last = chunk.end == rows.count});
    pass.member.meet();
  }
  if (rows.count == 0) linear_.backward_weights(pass, rows.inner, dlogits, 0);  // its turn must be taken
  scatter(pass, rows, true);
}

}  // namespace quern::nn
