#include "nn/gpt.h"

#include <algorithm>
#include <cassert>

#include "kernels/embedding.h"
#include "nn/block.h"
#include "nn/output.h"
#include "nn/regions.h"

namespace quern {

namespace {

// One sequence at a time: the part of each that is in this member's rows.
void embed(const Pass& pass, const Weights& weights, float* x) {
  const size_t T = pass.batch.T, C = pass.config.width;
  const Range mine = pass.member.part(pass.rows());
  const Timed timed(kEmbeddingForward, element_bytes(pass, C, 12));
  for (size_t row = mine.begin; row < mine.end;) {
    const size_t position = row % T, n = std::min(T - position, mine.end - row);
    kernels::embedding_forward(pass.batch.tokens + row, weights.token_table(), weights.position_table(), x + row * C, n,
                               C, position);
    row += n;
  }
}

double sum_of_losses(const Pass& pass) {
  double sum = 0;
  for (size_t s = 0; s < pass.batch.sequences; ++s) sum += pass.work.loss_of_sequence(s, pass.batch.T);
  return sum;
}

}  // namespace

Gpt::Gpt(const ModelConfig& config, bool packed)
    : config_(config), layout_(config), weights_(layout_, packed, config.storage) {}

void Gpt::initialise(uint64_t seed) {
  quern::initialise(layout_, config_.layers, seed, weights_.values());
  weights_.repack();
}

void Gpt::forward(const Pass& pass) const {
  assert(pass.batch.sequences <= pass.work.sequences() && pass.batch.T <= config_.context);
  Workspace& work = pass.work;
  float *x = work.entry(0), *stream = work.stream.data();
  embed(pass, weights_, x);
  pass.member.meet();
  apply_dropout(pass, Purpose::kEmbeddingDropout, 0, x, x);
  pass.member.meet();
  pass.show(Stage::kEmbedding);
  for (size_t layer = 0; layer < config_.layers; ++layer) {
    block_forward(pass, weights_.block(layer), layer, {.add_delta = layer > 0});
    pass.show(Stage::kBlock, layer);
  }
  norm_forward(pass, {kFinalNormForward}, weights_.final_norm(), stream, stream, work.last);
  pass.member.meet();
  pass.show(Stage::kFinalNorm);
}

// Recomputes the activations of layers first ... last, which other layers have overwritten, from the saved entry of the
// first.
void Gpt::forward_again(const Pass& pass, size_t first, size_t last) const {
  for (size_t layer = first; layer <= last; ++layer) {
    block_forward(pass, weights_.block(layer), layer,
                  {.add_delta = layer > first, .output = layer < last, .again = true});
  }
}

void Gpt::backward(const Pass& pass) const {
  Workspace& work = pass.work;
  const size_t C = config_.width, T = pass.batch.T;
  const Range mine = pass.member.part(pass.rows() * C);
  std::fill_n(work.dx.data() + mine.begin, mine.size(), 0.0f);
  pass.member.meet();
  norm_backward(pass, {kFinalNormBackward}, weights_.final_norm(), layout_.final_norm(), work.last);
  pass.show(Stage::kFinalNormGradient);
  size_t have = work.first_of_group(config_.layers - 1);  // the lowest layer whose activations are available
  for (size_t layer = config_.layers; layer-- > 0;) {
    if (layer < have) {
      have = work.first_of_group(layer);
      forward_again(pass, have, layer);
    }
    block_backward(pass, weights_.block(layer), layer);
    pass.show(Stage::kBlockGradient, layer);
  }
  apply_dropout(pass, Purpose::kEmbeddingDropout, 0, work.dx.data(), work.dx.data());
  pass.member.meet();
  if (!pass.member.leads()) return;
  const Timed timed(kEmbeddingBackward, static_cast<double>(pass.rows() * C * 20));
  pass.gradient->enter_inputs(pass.batch.turn, pass.member);
  for (size_t s = 0; s < pass.batch.sequences; ++s) {
    pass.gradient->add_inputs(pass.batch.tokens + s * T, work.dx.data() + s * T * C, T);
  }
  pass.show(Stage::kInputGradient);
  pass.gradient->leave_inputs(pass.batch.turn);
}

double Gpt::loss(const MicroBatch& batch, Workspace& work, const Member& member) const {
  const Pass pass{config_, layout_, batch, work, member};
  forward(pass);
  output_forward(pass, weights_);
  return sum_of_losses(pass);
}

void Gpt::logits(const MicroBatch& batch, float* out, Workspace& work, const Member& member) const {
  const Pass pass{config_, layout_, batch, work, member};
  forward(pass);
  output_logits(pass, weights_, out);
}

double Gpt::forward_backward(const MicroBatch& batch, float scale, Gradient& gradient, Workspace& work,
                             const Member& member, Watch* watch) const {
  assert(work.has_backward());
  const Pass pass{config_, layout_, batch, work, member, config_.dropout, &gradient, watch};
  forward(pass);
  output_forward_backward(pass, weights_, scale);
  pass.show(Stage::kOutputGradient);
  const double sum = sum_of_losses(pass);
  backward(pass);
  return sum;
}

}  // namespace quern
