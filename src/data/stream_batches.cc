#include "data/stream_batches.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>

#include "core/error.h"
#include "data/text_tokens.h"
#include "data/token_producers.h"

namespace quern::data {
namespace {

class StreamReader final : public BatchReader {
 public:
  StreamReader(const TextPieces& text, const Tokenizer& tokenizer, const StreamOptions& options,
               const StreamPosition& position)
      : pieces_(text.count()),
        context_(options.context),
        position_(position),
        window_(size_t{options.context} + 1),
        producers_(options.producers, position.piece,
                   [&text, &tokenizer](uint64_t piece, std::vector<int32_t>& tokens) {
                     thread_local std::string scratch;
                     tokens_of_piece(text, tokenizer, piece % text.count(), scratch, tokens);
                   }) {}

  void read(Batch& batch) override {
    if (!started_) start();
    const auto tokens = batch.columns.ints(kTokensColumn).begin(), targets = batch.columns.ints(kTargetsColumn).begin();
    for (uint32_t i = 0; i < batch.sequences; ++i) {
      next_window();
      const size_t row = size_t{i} * context_;
      std::copy_n(window_.begin(), context_, tokens + static_cast<ptrdiff_t>(row));
      std::copy_n(window_.begin() + 1, context_, targets + static_cast<ptrdiff_t>(row));
    }
    batch.after = position_;
  }

 private:
  // Reads the first token of the first window.
  void start() {
    piece_ = producers_.next();
    if (position_.token > piece_.size()) {
      throw Error("[data] position in the text: expected at most token {} of piece {}, found {}", piece_.size(),
                  position_.piece, position_.token);
    }
    used_ = position_.token;
    window_.back() = take();
    started_ = true;
  }

  void next_window() {
    window_.front() = window_.back();
    for (size_t filled = 1; filled < window_.size();) {
      if (used_ == piece_.size()) next_piece();
      const size_t count = std::min(window_.size() - filled, piece_.size() - used_);
      std::memcpy(window_.data() + filled, piece_.data() + used_, count * sizeof(int32_t));
      filled += count;
      used_ += count;
    }
    position_.token = used_ - 1;
  }

  int32_t take() {
    if (used_ == piece_.size()) next_piece();
    position_.token = used_;
    return piece_[used_++];
  }

  // Moves to the next piece that is not empty.
  void next_piece() {
    for (uint64_t empty = 0; empty <= pieces_; ++empty) {
      piece_ = producers_.next();
      ++position_.piece;
      used_ = 0;
      if (!piece_.empty()) return;
    }
    throw Error("[data] expected text, found {} empty pieces", pieces_);
  }

  uint64_t pieces_;
  size_t context_;
  StreamPosition position_;         // of window_.back(), the first token of the next window
  std::vector<int32_t> window_;     // context + 1 tokens
  std::span<const int32_t> piece_;  // position_.piece, when the window was filled
  size_t used_ = 0;                 // tokens of piece_ that were used
  bool started_ = false;
  TokenProducers producers_;  // last member, so that its threads end first
};

}  // namespace

StreamBatches::StreamBatches(TextPieces text, const Tokenizer& tokenizer, const StreamOptions& options)
    : text_(std::move(text)), tokenizer_(&tokenizer), options_(options) {
  if (options_.context == 0) throw Error("[data] expected a context of at least 1 token, found 0");
  if (text_.count() == 0) throw Error("[data] expected text, found none");
}

std::unique_ptr<BatchReader> StreamBatches::reader(const StreamPosition& position) const {
  return std::make_unique<StreamReader>(text_, *tokenizer_, options_, position);
}

}  // namespace quern::data
