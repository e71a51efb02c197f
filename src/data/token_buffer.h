// Tokens in memory, filled by tokenising text.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "data/cut_rule.h"
#include "data/token_stream.h"

namespace quern::data {

// Appends the tokens of `text` to `tokens`.
using Encode = std::function<void(std::string_view text, std::vector<int32_t>& tokens)>;

// Stores two bytes per token if the vocabulary has at most 65,536 entries, otherwise four. Grows in chunks that never
// move, so growing needs no second copy. Filled by one thread, then readable by any.
class TokenBuffer : public TokenStream {
 public:
  explicit TokenBuffer(uint32_t vocabulary);  // Error unless 1 to 2^31 entries

  uint64_t size() const override { return size_; }
  void copy(uint64_t position, size_t count, int32_t* out) const override;

  // Error, naming the first token outside [0, vocabulary); the tokens before it are appended.
  void append(std::span<const int32_t> tokens);

  // Tokenises `text` in pieces of about a megabyte, so that a file of any size needs little more memory than its
  // tokens. A piece ends between a visible character and a space or, with kBeforeWhiteSpace, line break. GPT-2's
  // pre-tokenisation always splits there (no pattern continues from a visible character into white space, and its
  // look-ahead only applies after white space), and so does a byte or character tokenizer, so the tokens are those of
  // the whole text. The expressions of Llama 3 and Qwen continue from punctuation into line breaks, so they need
  // kBeforeSpace. The end of the text is also such a position. If there is none within another megabyte, the text is
  // cut before a space, line break or UTF-8 character.
  void append_text(std::string_view text, const Encode& encode, CutRule rule = CutRule::kBeforeWhiteSpace);

  uint64_t memory_bytes() const { return chunks_.size() * kChunkTokens * width_; }

  static constexpr size_t kChunkTokens = size_t{1} << 20;
  static constexpr size_t kPieceBytes = size_t{1} << 20;

 private:
  template <typename Word>
  void append_words(std::span<const int32_t> tokens);
  template <typename Word>
  void copy_words(uint64_t position, size_t count, int32_t* out) const;

  uint32_t vocabulary_;
  size_t width_;  // bytes per token
  uint64_t size_ = 0;
  std::vector<std::unique_ptr<std::byte[]>> chunks_;
  std::vector<int32_t> piece_;  // tokens of the current piece
};

// The length of the first piece of `text`, cut as in append_text(). At least 1 unless the text is empty.
size_t piece_length(std::string_view text, size_t wanted = TokenBuffer::kPieceBytes,
                    CutRule rule = CutRule::kBeforeWhiteSpace);

}  // namespace quern::data
