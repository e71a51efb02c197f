#include "nn/output.h"

#include <algorithm>

#include "kernels/cross_entropy.h"
#include "nn/linear.h"
#include "nn/regions.h"

namespace quern {

using kernels::Layout;

namespace {

// Rows first ... first + rows of the pass, whose logits are materialized.
struct Chunk {
  size_t first, rows;
};

void logits_of(const Pass& pass, const Weights& weights, const Chunk& chunk, float* out) {
  const size_t C = pass.config.width, V = pass.config.vocabulary;
  const Timed timed(kOutputForward, product_flops(pass, chunk.rows, C, V));
  gemm_part({.layout = Layout::kNT,
             .M = chunk.rows,
             .N = V,
             .K = C,
             .a = {pass.work.inner.data() + chunk.first * C, C},
             .b = {weights.token_table(), C},
             .packed_b = weights.packed_output(),
             .packed_type = weights.packed_type(),
             .c = out,
             .c_stride = V},
            pass.member, pass.gemm_scratch());
}

// The losses of the chunk; if `gradient` is true, the gradient overwrites the logits.
void losses_of(const Pass& pass, const Chunk& chunk, float scale, bool gradient) {
  const size_t V = pass.config.vocabulary;
  const Range rows = pass.member.part(chunk.rows);
  const Timed timed(kCrossEntropy, static_cast<double>(rows.size() * V * (gradient ? 8 : 4)));
  kernels::cross_entropy(pass.work.logits.data() + rows.begin * V, V, pass.batch.targets + chunk.first + rows.begin,
                         rows.size(), V, scale, pass.work.losses.data() + chunk.first + rows.begin, gradient);
}

void input_gradient(const Pass& pass, const Weights& weights, const Chunk& chunk) {
  const size_t C = pass.config.width, V = pass.config.vocabulary;
  const Timed timed(kOutputInputGradient, product_flops(pass, chunk.rows, C, V));
  gemm_part({.layout = Layout::kNN,
             .M = chunk.rows,
             .N = C,
             .K = V,
             .a = {pass.work.logits.data(), V},
             .b = {weights.token_table(), C},
             .packed_b = weights.packed_output_backward(),
             .packed_type = weights.packed_type(),
             .c = pass.work.dinner.data() + chunk.first * C,
             .c_stride = C},
            pass.member, pass.gemm_scratch());
}

void weight_gradient(const Pass& pass, const Chunk& chunk) {
  const size_t C = pass.config.width, V = pass.config.vocabulary;
  const Timed timed(kOutputWeightGradient, product_flops(pass, chunk.rows, C, V));
  add_product_in_turn(pass, {.tensor = 0,
                             .a = pass.work.logits.data(),
                             .a_stride = V,
                             .b = pass.work.inner.data() + chunk.first * C,
                             .rows = chunk.rows,
                             .first = chunk.first == 0,
                             .last = chunk.first + chunk.rows == pass.rows()});
}

}  // namespace

void output_logits(const Pass& pass, const Weights& weights, float* out) {
  logits_of(pass, weights, {0, pass.rows()}, out);
  pass.member.meet();
}

void output_forward(const Pass& pass, const Weights& weights) {
  for (size_t first = 0; first < pass.rows(); first += pass.work.output_chunk) {
    const Chunk chunk{first, std::min(pass.work.output_chunk, pass.rows() - first)};
    logits_of(pass, weights, chunk, pass.work.logits.data());
    pass.member.meet();
    losses_of(pass, chunk, 1.0f, false);
    pass.member.meet();
  }
}

void output_forward_backward(const Pass& pass, const Weights& weights, float scale) {
  for (size_t first = 0; first < pass.rows(); first += pass.work.output_chunk) {
    const Chunk chunk{first, std::min(pass.work.output_chunk, pass.rows() - first)};
    logits_of(pass, weights, chunk, pass.work.logits.data());
    pass.member.meet();
    pass.show(Stage::kLogits, chunk.rows);
    losses_of(pass, chunk, scale, true);
    pass.member.meet();
    input_gradient(pass, weights, chunk);
    weight_gradient(pass, chunk);
    pass.member.meet();
  }
}

}  // namespace quern
