#include "data/stream_sequences.h"

#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

#include "core/error.h"
#include "data/text_tokens.h"
#include "data/token_producers.h"

namespace quern::data {
namespace {

class StreamReader final : public SequenceReader {
 public:
  StreamReader(const TextPieces& text, const Tokenizer& tokenizer, const StreamOptions& options,
               const SourcePosition& position)
      : context_(options.context),
        position_{.file = position.file, .piece = position.piece, .token = position.token},
        window_(size_t{options.context} + 1),
        cursor_(text, {position.file, position.piece}),
        producers_(
            options.producers, [this](TokenPiece& piece) { piece.index = cursor_.next(piece.raw); },
            [&tokenizer](TokenPiece& piece) { tokens_of_piece(piece.raw, tokenizer, piece.tokens); }) {}

  void next(uint32_t, uint32_t, int32_t* inputs, int32_t* targets) override {
    if (!started_) start();
    next_window();
    std::copy_n(window_.begin(), context_, inputs);
    std::copy_n(window_.begin() + 1, context_, targets);
  }

  SourcePosition position() const override { return position_; }

 private:
  // Reads the first token of the first window.
  void start() {
    const SourcePosition wanted = position_;
    next_piece();
    const bool is_start = wanted.file == 0 && wanted.piece == 0;  // which may be held out
    if (!is_start && (wanted.file != position_.file || wanted.piece != position_.piece)) {
      throw Error("[data] position in the text: expected piece {} of file {}, found that it ends before", wanted.piece,
                  wanted.file);
    }
    if (wanted.token > piece_->size()) {
      throw Error("[data] position in the text: expected at most token {} of piece {}, found {}", piece_->size(),
                  wanted.piece, wanted.token);
    }
    used_ = wanted.token;
    if (used_ == piece_->size()) next_nonempty_piece();
    position_.token = used_;
    window_.back() = (*piece_)[used_++];
    started_ = true;
  }

  void next_window() {
    window_.front() = window_.back();
    for (size_t filled = 1; filled < window_.size();) {
      if (used_ == piece_->size()) next_nonempty_piece();
      const size_t count = std::min(window_.size() - filled, piece_->size() - used_);
      std::memcpy(window_.data() + filled, piece_->data() + used_, count * sizeof(int32_t));
      filled += count;
      used_ += count;
    }
    position_.token = used_ - 1;
  }

  void next_piece() {
    const TokenPiece& piece = producers_.next();
    piece_ = &piece.tokens;
    position_.file = piece.index.file;
    position_.piece = piece.index.piece;
    used_ = 0;
  }

  void next_nonempty_piece() {
    const uint64_t round = cursor_.round({position_.file, position_.piece});
    do {
      next_piece();
      if (cursor_.round({position_.file, position_.piece}) > round + 1) {
        throw Error("[data] expected text, found only empty documents");
      }
    } while (piece_->empty());
  }

  size_t context_;
  SourcePosition position_;                      // of window_.back(), the first token of the next window
  std::vector<int32_t> window_;                  // context + 1 tokens
  const std::vector<int32_t>* piece_ = nullptr;  // the current piece, when the window was filled
  size_t used_ = 0;                              // tokens of piece_ that were used
  bool started_ = false;
  PieceCursor cursor_;        // used by the producers, except for round()
  TokenProducers producers_;  // last member, so that its threads end first
};

}  // namespace

StreamSequences::StreamSequences(TextPieces text, const Tokenizer& tokenizer, const StreamOptions& options)
    : text_(std::move(text)), tokenizer_(&tokenizer), options_(options) {
  if (options_.context == 0) throw Error("[data] expected a context of at least 1 token, found 0");
  if (text_.empty()) throw Error("[data] expected text, found none");
}

std::unique_ptr<SequenceReader> StreamSequences::reader(const SourcePosition& position) const {
  return std::make_unique<StreamReader>(text_, *tokenizer_, options_, position);
}

}  // namespace quern::data
