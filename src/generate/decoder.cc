#include "generate/decoder.h"

#include <algorithm>

#include "core/error.h"
#include "kernels/convert.h"
#include "kernels/embedding.h"
#include "kernels/gemm.h"
#include "kernels/layernorm.h"

namespace quern {
namespace {

// Positions of a prompt per pass: enough rows to amortize reading the weights, few enough for the caches.
constexpr size_t kMaxRows = 64;

// When another member pays off: it has this many multiply-adds between two barriers, and its own block of the narrowest
// product, a panel of columns by this many rows. Two threads compared with one, measured (docs/parallel.md,
// "Generation"): a width of 64, one panel, runs 0.8 times as fast with 3,500 multiply-adds each and 1.1 to 1.2 times
// with 16 rows and more; a width of 96, two panels, 1.6 times with 7,900 each; the preset tiny 1.7 times with 14,000.
constexpr size_t kMinWork = 7'500;
constexpr size_t kMinRows = 16;

// How many tokens a window of `tokens` loses. A slide shrinks it from context + 1 to context / 2 + 1, so each loses
// context - context / 2; a prompt may require several slides.
size_t surplus(size_t tokens, size_t context) {
  if (tokens <= context) return 0;
  const size_t step = context - context / 2;
  return (tokens - context + step - 1) / step * step;
}

}  // namespace

Decoder::Decoder(const Gpt& model, const DecoderOptions& options)
    : model_(&model),
      options_(options),
      cache_shape_{
          .heads = model.config().heads, .head_dim = model.config().head_dim(), .capacity = model.config().context},
      caches_(model.config().layers),
      scratch_(members_for(kMaxRows)),
      pool_(scratch_.size(), [this](const Member& member) { pass(member); }) {
  window_.reserve(model.config().context);
  lay_out();
  arena_.allocate(Fill::kZero);
  lay_out();
}

void Decoder::lay_out() {
  const ModelConfig& config = model_->config();
  const size_t rows = std::min(kMaxRows, config.context), C = config.width;
  for (std::span<float>& cache : caches_) cache = arena_.take<float>(kernels::attention_cache_size(cache_shape_));
  x_ = arena_.take<float>(rows * C);
  normed_ = arena_.take<float>(rows * C);
  delta_ = arena_.take<float>(rows * C);
  qkv_ = arena_.take<float>(rows * 3 * C);
  wide_ = arena_.take<float>(rows * 4 * C);
  if (config.storage != kernels::DType::kF32) saved_ = arena_.take<kernels::Half>(rows * 4 * C);
  logits_ = arena_.take<float>(config.vocabulary);
  for (Scratch& scratch : scratch_) {
    scratch.gemm = arena_.take<float>(kernels::kGemmScratch);
    scratch.attention = arena_.take<float>(kernels::attention_decode_scratch(cache_shape_));
  }
}

// A block has 12 C^2 multiply-adds per position, and its members synchronize seven times. See kMinWork.
size_t Decoder::members_for(size_t rows) const {
  if (options_.share_all) return options_.threads;
  const size_t C = model_->config().width;
  rows = std::min({rows, kMaxRows, model_->config().context});
  const size_t blocks = std::max<size_t>(1, C / kernels::kPanelColumns) * std::max<size_t>(1, rows / kMinRows);
  return std::clamp<size_t>(std::min(blocks, rows * 12 * C * C / 7 / kMinWork), 1, options_.threads);
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

// Adds the tokens to the window, which slides if they do not fit.
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
  pool_.run(members_for(window_.size() - cached_));
  cached_ = window_.size();
  return logits_;
}

// Computes all positions that are not cached yet, and the logits of the last.
void Decoder::pass(const Member& member) {
  if (options_.before_pass) options_.before_pass(member);
  size_t rows = 0;
  for (size_t first = cached_; first < window_.size(); first += rows) {
    rows = std::min(kMaxRows, window_.size() - first);
    forward({cache_shape_, qkv_.data(), rows, first}, member);
  }
  logits(rows - 1, member);
}

// Takes these positions through all blocks; the residual stream is then x_ + delta_. A member has the same rows here
// and in the norms, so no barrier is needed between them.
void Decoder::forward(const kernels::NewPositions& positions, const Member& member) {
  const Weights& weights = model_->weights();
  const Range mine = member.part(positions.rows);
  const size_t C = model_->config().width, at = positions.first + mine.begin;
  kernels::embedding_forward(window_.data() + at, weights.token_table(), weights.position_table(),
                             x_.data() + mine.begin * C, mine.size(), C, at);
  for (size_t layer = 0; layer < model_->config().layers; ++layer) block(layer, positions, member);
}

// The forward pass of nn/block.h without what backward needs.
void Decoder::block(size_t layer, const kernels::NewPositions& positions, const Member& member) {
  const BlockWeights weights = model_->weights().block(layer);
  const Scratch& scratch = scratch_[member.index];
  const size_t rows = positions.rows;
  const Range heads = member.part(cache_shape_.heads);
  norm(weights.norm1, layer > 0, rows, member);
  member.meet();
  linear_forward(weights.qkv, normed_.data(), {qkv_.data(), saved()}, rows, scratch.gemm, member);
  member.meet();
  kernels::attention_cache_store(positions, heads, caches_[layer].data());
  kernels::attention_decode(positions, heads, caches_[layer].data(), normed_.data(), scratch.attention);
  member.meet();
  round_attention(rows, member);
  linear_forward(weights.project, normed_.data(), {delta_.data()}, rows, scratch.gemm, member);
  member.meet();

  norm(weights.norm2, true, rows, member);
  member.meet();
  linear_gelu_forward(weights.expand, normed_.data(), {wide_.data(), saved()}, rows, scratch.gemm, member);
  member.meet();
  linear_forward(weights.contract, wide_.data(), {delta_.data()}, rows, scratch.gemm, member);
  member.meet();
}

// Continues from the values rounded to 16 bits that training would save.
kernels::SavedTensor Decoder::saved() const {
  if (saved_.empty()) return {};
  return {saved_.data(), model_->config().storage};
}

void Decoder::round_attention(size_t rows, const Member& member) {
  if (saved_.empty()) return;
  const Range mine = member.part(rows * model_->config().width, 16);
  kernels::save_rounded(normed_.data() + mine.begin, saved_.data() + mine.begin, model_->config().storage, mine.size());
  member.meet();
}

// A member's rows of normed_ = norm(x_), after x_ += delta_ if requested.
void Decoder::norm(const Norm& norm, bool add_delta, size_t rows, const Member& member) {
  const Range mine = member.part(rows);
  const size_t C = model_->config().width, at = mine.begin * C;
  const kernels::LayernormSaved saved{nullptr, model_->config().storage, nullptr};
  float *x = x_.data() + at, *out = normed_.data() + at;
  if (add_delta) {
    kernels::residual_layernorm_forward(x, delta_.data() + at, x, norm.weight, norm.bias, out, saved, mine.size(), C);
  } else {
    kernels::layernorm_forward(x, norm.weight, norm.bias, out, saved, mine.size(), C);
  }
}

// The logits at position `row` of the last forward().
void Decoder::logits(size_t row, const Member& member) {
  const Weights& weights = model_->weights();
  const size_t C = model_->config().width, V = model_->config().vocabulary;
  const Norm norm = weights.final_norm();
  if (member.leads()) {
    kernels::residual_layernorm_forward(x_.data() + row * C, delta_.data() + row * C, x_.data() + row * C, norm.weight,
                                        norm.bias, normed_.data(), {nullptr, model_->config().storage, nullptr}, 1, C);
  }
  member.meet();
  gemm_part({.layout = kernels::Layout::kNT,
             .M = 1,
             .N = V,
             .K = C,
             .a = {normed_.data(), C},
             .b = {weights.token_table(), C},
             .packed_b = weights.packed_output(),
             .packed_type = weights.packed_type(),
             .c = logits_.data(),
             .c_stride = V},
            member, scratch_[member.index].gemm);
}

}  // namespace quern
