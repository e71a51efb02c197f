#include "generate/decoder.h"

#include <algorithm>

#include "core/error.h"
#include "kernels/embedding.h"
#include "kernels/gemm.h"
#include "kernels/layernorm.h"

namespace quern {
namespace {

// Positions of a prompt at once: enough rows that reading the weights does not count, few enough for the caches.
constexpr size_t kMostRows = 64;

// How many tokens a window of `tokens` loses. A slide takes it from context + 1 to context / 2 + 1, so each loses
// context - context / 2; a prompt may be several slides long.
size_t surplus(size_t tokens, size_t context) {
  if (tokens <= context) return 0;
  const size_t step = context - context / 2;
  return (tokens - context + step - 1) / step * step;
}

}  // namespace

Decoder::Decoder(const Gpt& model)
    : model_(&model),
      cache_shape_{
          .heads = model.config().heads, .head_dim = model.config().head_dim(), .capacity = model.config().context},
      caches_(model.config().layers) {
  window_.reserve(model.config().context);
  lay_out();
  arena_.allocate(Fill::kZero);
  lay_out();
}

void Decoder::lay_out() {
  const ModelConfig& config = model_->config();
  const size_t rows = std::min(kMostRows, config.context), C = config.width;
  for (std::span<float>& cache : caches_) cache = arena_.take<float>(kernels::attention_cache_size(cache_shape_));
  x_ = arena_.take<float>(rows * C);
  normed_ = arena_.take<float>(rows * C);
  delta_ = arena_.take<float>(rows * C);
  qkv_ = arena_.take<float>(rows * 3 * C);
  wide_ = arena_.take<float>(rows * 4 * C);
  mean_ = arena_.take<float>(rows);
  reciprocal_ = arena_.take<float>(rows);
  logits_ = arena_.take<float>(config.vocabulary);
  gemm_ = arena_.take<float>(kernels::kGemmScratch);
  attention_ = arena_.take<float>(kernels::attention_decode_scratch(cache_shape_));
}

void Decoder::clear() {
  window_.clear();
  cached_ = 0;
}

void Decoder::check_tokens(std::span<const int32_t> tokens) const {
  if (tokens.empty()) throw Error("[generate] tokens: expected at least one, found none");
  const size_t V = model_->config().vocabulary;
  for (size_t i = 0; i < tokens.size(); ++i) {
    if (tokens[i] < 0 || static_cast<size_t>(tokens[i]) >= V) {
      throw Error("[generate] token {}: expected an id of 0 to {}, found {}", i, V - 1, tokens[i]);
    }
  }
}

// Puts the tokens into the window, sliding it where they do not fit.
void Decoder::enter(std::span<const int32_t> tokens) {
  const size_t lost = surplus(window_.size() + tokens.size(), model_->config().context);
  if (lost > 0) {
    const size_t old = std::min(lost, window_.size());
    window_.erase(window_.begin(), window_.begin() + static_cast<ptrdiff_t>(old));
    tokens = tokens.subspan(lost - old);
    cached_ = 0;
  }
  window_.insert(window_.end(), tokens.begin(), tokens.end());
}

std::span<const float> Decoder::append(std::span<const int32_t> tokens) {
  check_tokens(tokens);
  enter(tokens);
  size_t rows = 0;
  while (cached_ < window_.size()) {
    rows = std::min(kMostRows, window_.size() - cached_);
    forward(rows);
    cached_ += rows;
  }
  logits(rows - 1);
  return logits_;
}

// The next `rows` positions of the window through all blocks: the residual stream is then x_ + delta_.
void Decoder::forward(size_t rows) {
  const Weights& weights = model_->weights();
  kernels::embedding_forward(window_.data() + cached_, weights.token_table(), weights.position_table(), x_.data(), rows,
                             model_->config().width, cached_);
  const kernels::NewPositions positions{cache_shape_, qkv_.data(), rows, cached_};
  for (size_t layer = 0; layer < model_->config().layers; ++layer) block(layer, positions);
}

// nn/block.h's forward without what backward needs.
void Decoder::block(size_t layer, const kernels::NewPositions& positions) {
  const BlockWeights weights = model_->weights().block(layer);
  const size_t rows = positions.rows;
  norm(weights.norm1, layer > 0, rows);
  linear_forward(weights.qkv, normed_.data(), qkv_.data(), rows, gemm_);
  kernels::attention_cache_store(positions, caches_[layer].data());
  kernels::attention_decode(positions, caches_[layer].data(), normed_.data(), attention_);
  linear_forward(weights.project, normed_.data(), delta_.data(), rows, gemm_);

  norm(weights.norm2, true, rows);
  linear_gelu_forward(weights.expand, normed_.data(), nullptr, wide_.data(), rows, gemm_);
  linear_forward(weights.contract, wide_.data(), delta_.data(), rows, gemm_);
}

// normed_ = norm(x_), after x_ += delta_ where asked for.
void Decoder::norm(const Norm& norm, bool add_delta, size_t rows) {
  const kernels::LayernormStats stats{mean_.data(), reciprocal_.data()};
  const size_t C = model_->config().width;
  if (add_delta) {
    kernels::residual_layernorm_forward(x_.data(), delta_.data(), x_.data(), norm.weight, norm.bias, normed_.data(),
                                        stats, rows, C);
  } else {
    kernels::layernorm_forward(x_.data(), norm.weight, norm.bias, normed_.data(), stats, rows, C);
  }
}

// Of the last forward()'s position `row`.
void Decoder::logits(size_t row) {
  const Weights& weights = model_->weights();
  const size_t C = model_->config().width, V = model_->config().vocabulary;
  const Norm norm = weights.final_norm();
  kernels::residual_layernorm_forward(x_.data() + row * C, delta_.data() + row * C, x_.data() + row * C, norm.weight,
                                      norm.bias, normed_.data(), {mean_.data(), reciprocal_.data()}, 1, C);
  kernels::gemm({.layout = kernels::Layout::kNT,
                 .M = 1,
                 .N = V,
                 .K = C,
                 .a = {normed_.data(), C},
                 .b = {weights.token_table(), C},
                 .packed_b = weights.packed_output(),
                 .c = logits_.data(),
                 .c_stride = V},
                gemm_);
}

}  // namespace quern
