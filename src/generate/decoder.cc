#include "generate/decoder.h"

#include <algorithm>

#include "core/error.h"
#include "kernels/attention_decode.h"
#include "kernels/gemm.h"

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

Decoder::Decoder(const nn::LanguageModel& model, const DecoderOptions& options)
    : model_(&model),
      options_(options),
      cache_{.shape = {.heads = model.activations().attention.heads,
                       .kv_heads = model.activations().attention.kv_heads,
                       .head_dim = model.activations().attention.head_dim,
                       .capacity = model.config().context},
             .blocks = std::vector<std::span<float>>(model.activations().blocks)},
      work_(model.activations(), {.context = std::min(kMaxRows, model.config().context),
                                  .members = members_for(kMaxRows),
                                  .logit_rows = 1,
                                  .cache_capacity = model.config().context}),
      pool_(members_for(kMaxRows), [this](const Member& member) { pass(member); }) {
  window_.reserve(model.config().context);
  lay_out_cache();
  arena_.allocate(Fill::kZero);
  lay_out_cache();
}

void Decoder::lay_out_cache() {
  for (std::span<float>& block : cache_.blocks) block = arena_.take<float>(kernels::attention_cache_size(cache_.shape));
}

// The members synchronize seven times per block. See kMinWork.
size_t Decoder::members_for(size_t rows) const {
  if (options_.share_all) return options_.threads;
  const nn::ActivationPlan& plan = model_->activations();
  rows = std::min({rows, kMaxRows, plan.context});
  const auto block_products = static_cast<size_t>(plan.cost.products) / plan.blocks;
  const size_t pieces = std::max<size_t>(1, plan.width / kernels::kPanelColumns) * std::max<size_t>(1, rows / kMinRows);
  return std::clamp<size_t>(std::min(pieces, rows * block_products / 7 / kMinWork), 1, options_.threads);
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
  return work_.logits;
}

// Computes all positions that are not cached yet, and the logits of the last.
void Decoder::pass(const Member& member) {
  if (options_.before_pass) options_.before_pass(member);
  for (size_t first = cached_, rows = 0; first < window_.size(); first += rows) {
    rows = std::min(kMaxRows, window_.size() - first);
    const bool last = first + rows == window_.size();
    model_->decode(
        {.columns = {{kTokensColumn, window_.data() + first}}, .sequences = 1, .T = rows, .first_position = first},
        cache_, last, work_, member);
  }
}

}  // namespace quern
