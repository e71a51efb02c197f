#include "nn/gpt.h"

#include <algorithm>
#include <cassert>

#include "kernels/embedding.h"
#include "kernels/layernorm.h"
#include "kernels/output_loss.h"
#include "kernels/vector_ops.h"
#include "nn/block.h"

namespace quern {

Gradient::Gradient(const ParameterLayout& layout)
    : token_table_(layout.token_table()),
      values_(layout.size(), Fill::kZero),
      input_rows_(layout.tensors().front().size, Fill::kZero) {}

void Gradient::clear() {
  std::fill(values_.span().begin(), values_.span().end(), 0.0f);
  std::fill(input_rows_.span().begin(), input_rows_.span().end(), 0.0f);
}

void Gradient::join() { kernels::accumulate(values_.data() + token_table_, input_rows_.data(), input_rows_.size()); }

Gpt::Gpt(const ModelConfig& config, bool packed) : config_(config), layout_(config), weights_(layout_, packed) {}

void Gpt::initialise(uint64_t seed) {
  quern::initialise(layout_, config_.layers, seed, weights_.values());
  weights_.repack();
}

void Gpt::forward(const MicroBatch& batch, Workspace& work, float dropout) const {
  assert(batch.sequences <= work.sequences() && batch.T <= config_.context);
  const Pass pass{config_, batch, work, dropout};
  const size_t C = config_.width;
  float* x = work.block(0).x.data();
  for (size_t s = 0; s < batch.sequences; ++s) {
    kernels::embedding_forward(batch.tokens + s * batch.T, weights_.token_table(), weights_.position_table(),
                               x + s * batch.T * C, batch.T, C);
  }
  apply_dropout(pass, Purpose::kEmbeddingDropout, 0, x, x);
  const float* below = nullptr;
  for (size_t layer = 0; layer < config_.layers; ++layer) {
    block_forward(pass, weights_.block(layer), work.block(layer), layer, below);
    below = work.block(layer).middle.data();
  }
  const Norm norm = weights_.final_norm();
  kernels::residual_layernorm_forward(below, work.delta.data(), work.x_last.data(), norm.weight, norm.bias,
                                      work.norm_last.data(),
                                      {work.stats_last.mean.data(), work.stats_last.reciprocal.data()}, pass.rows(), C);
}

double Gpt::output(const MicroBatch& batch, Workspace& work, float scale, float* dx, float* dweight) const {
  const size_t rows = batch.sequences * batch.T;
  kernels::output_loss({.rows = rows,
                        .C = config_.width,
                        .V = config_.vocabulary,
                        .x = work.norm_last.data(),
                        .weight = {weights_.token_table(), config_.width},
                        .packed_weight = weights_.packed_output(),
                        .packed_weight_transposed = weights_.packed_output_backward(),
                        .targets = batch.targets,
                        .scale = scale,
                        .losses = work.losses.data(),
                        .dx = dx,
                        .dweight = dweight,
                        .chunk = work.output_chunk},
                       work.output);
  double sum = 0;
  for (const float loss : work.losses.first(rows)) sum += static_cast<double>(loss);
  return sum;
}

double Gpt::loss(const MicroBatch& batch, Workspace& work) const {
  forward(batch, work, 0.0f);
  return output(batch, work, 1.0f, nullptr, nullptr);
}

double Gpt::forward_backward(const MicroBatch& batch, float scale, Gradient& gradient, Workspace& work) const {
  assert(work.has_backward());
  forward(batch, work, config_.dropout);
  float* values = gradient.values().data();
  const double sum = output(batch, work, scale, work.dinner.data(), values + layout_.token_table());

  const Pass pass{config_, batch, work, config_.dropout};
  const size_t C = config_.width;
  std::fill_n(work.dx.data(), pass.rows() * C, 0.0f);
  kernels::layernorm_backward({.x = work.x_last.data(),
                               .weight = weights_.final_norm().weight,
                               .dout = work.dinner.data(),
                               .stats = {work.stats_last.mean.data(), work.stats_last.reciprocal.data()},
                               .dx = work.dx.data(),
                               .dweight = values + layout_.final_norm().weight,
                               .dbias = values + layout_.final_norm().bias},
                              pass.rows(), C);
  for (size_t layer = config_.layers; layer-- > 0;) {
    block_backward(pass, weights_.block(layer), work.block(layer), layout_.blocks()[layer], layer, values);
  }
  apply_dropout(pass, Purpose::kEmbeddingDropout, 0, work.dx.data(), work.dx.data());
  for (size_t s = 0; s < batch.sequences; ++s) {
    kernels::embedding_backward(batch.tokens + s * batch.T, work.dx.data() + s * batch.T * C, gradient.input_rows(),
                                values + layout_.position_table(), batch.T, C);
  }
  return sum;
}

}  // namespace quern
