#include "generate/decoder.h"

#include <algorithm>

#include "core/error.h"
#include "kernels/attention_decode.h"
#include "kernels/gemm.h"

namespace quern {
namespace {

// Maximum number of positions of a prompt per pass: enough rows to amortize reading the weights, few enough for the
// caches. The products of the preset gpt2 took the same time, within 1 %, with 64 to 512 rows.
constexpr size_t kMaxRows = 128;

// When another member pays off: it has this many multiply-adds between two barriers, and its own block of the narrowest
// product, a panel of columns by this many rows. Two threads compared with one, measured (docs/parallel.md,
// "Generation"): a width of 64, one panel, runs 0.8 times as fast with 3,500 multiply-adds each and 1.1 to 1.2 times
// with 16 rows and more; a width of 96, two panels, 1.6 times with 7,900 each; the preset tiny 1.7 times with 14,000.
constexpr size_t kMinWork = 7'500;
constexpr size_t kMinRows = 16;

// How many tokens a window of `tokens` loses. A slide shrinks it from limit + 1 to limit / 2 + 1, so each loses limit -
// limit / 2; a prompt may require several slides.
size_t surplus(size_t tokens, size_t limit) {
  if (tokens <= limit) return 0;
  const size_t step = limit - limit / 2;
  return (tokens - limit + step - 1) / step * step;
}

// `wanted`, but at least 1 and at most `limit`; 0 for the limit.
size_t within(size_t wanted, size_t limit) { return wanted == 0 ? limit : std::min(wanted, limit); }

}  // namespace

size_t max_positions(const nn::LanguageModel& model) { return model.config().positions_limit(); }

size_t positions_for(const nn::LanguageModel& model, size_t prompt_tokens, size_t max_tokens) {
  const size_t limit = max_positions(model);
  if (prompt_tokens >= limit || max_tokens >= limit - prompt_tokens) return limit;
  return std::max<size_t>(1, prompt_tokens + max_tokens);
}

Decoder::Decoder(const nn::LanguageModel& model, const DecoderOptions& options)
    : model_(&model),
      options_(options),
      limit_(max_positions(model)),
      capacity_(within(options.capacity, limit_)),
      block_rows_(std::min(within(options.block_rows, kMaxRows), capacity_)),
      cache_{.shape = {.heads = model.activations().attention.heads,
                       .kv_heads = model.activations().attention.kv_heads,
                       .head_dim = model.activations().attention.head_dim,
                       .capacity = capacity_},
             .blocks = std::vector<std::span<float>>(model.activations().blocks)},
      work_(
          model.activations(),
          {.context = block_rows_, .members = members_for(block_rows_), .logit_rows = 1, .cache_capacity = capacity_}),
      pool_(members_for(block_rows_), [this](const Member& member) { pass(member); }) {
  window_.reserve(capacity_);
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
  rows = std::min(rows, block_rows_);
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

void Decoder::check_capacity(size_t tokens) const {
  const size_t needed = tokens - surplus(tokens, limit_);
  if (needed <= capacity_) return;
  throw Error("[generate] tokens: expected at most {} in the window, the capacity of the decoder, found {}", capacity_,
              needed);
}

// Adds the tokens to the window, which slides if they do not fit.
void Decoder::enter(std::span<const int32_t> tokens) {
  const size_t lost = surplus(window_.size() + tokens.size(), limit_);
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
  check_capacity(window_.size() + tokens.size());
  enter(tokens);
  return compute();
}

std::span<const float> Decoder::restart(std::span<const int32_t> tokens) {
  check_tokens(tokens);
  check_capacity(tokens.size());
  tokens = tokens.subspan(surplus(tokens.size(), limit_));
  const auto differs = std::mismatch(window_.begin(), window_.begin() + static_cast<ptrdiff_t>(cached_), tokens.begin(),
                                     tokens.end() - 1);  // the last position's logits are not kept
  cached_ = static_cast<size_t>(differs.first - window_.begin());
  window_.assign(tokens.begin(), tokens.end());
  return compute();
}

// Computes all positions that are not cached yet, block by block, and the logits of the last.
std::span<const float> Decoder::compute() {
  const size_t first = cached_, total = window_.size() - first;
  while (cached_ < window_.size()) {
    rows_ = std::min(block_rows_, window_.size() - cached_);
    pool_.run(members_for(rows_));
    cached_ += rows_;
    if (options_.on_block && total > block_rows_) options_.on_block(cached_ - first, total);
  }
  return work_.logits;
}

void Decoder::pass(const Member& member) {
  if (options_.before_pass) options_.before_pass(member);
  model_->decode(
      {.columns = {{kTokensColumn, window_.data() + cached_}}, .sequences = 1, .T = rows_, .first_position = cached_},
      cache_, cached_ + rows_ == window_.size(), work_, member);
}

}  // namespace quern
