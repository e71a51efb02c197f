// Splits text into pieces that byte-level BPE never merges across: words with the preceding space, numbers,
// punctuation, contractions, runs of white space.
#pragma once

#include <cstddef>
#include <string_view>

#include "data/tokenizer_parts.h"

namespace quern::data {

// The pieces are those of a regular expression, with letters, numbers and white space as in unicode_classes.h:
//   kGpt2        's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
//   kDigitsGpt2  \p{N}, and GPT-2's expression for the text between its matches, separately
//   kLlama3      (?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*
//                |\s*[\r\n]+|\s+(?!\S)|\s+
//   kQwen2       the same with \p{N} instead of \p{N}{1,3}
//   kNone        the whole text is one piece
// Concatenated they are the whole text, and none is empty.
//
// Text that is not UTF-8 is split at bytes that are not part of a valid character: a run of such bytes is a piece, and
// the text on each side is split on its own.
//
// Not thread-safe. Time is linear in the length of any text.
class Pretokenizer {
 public:
  explicit Pretokenizer(PretokenizerKind kind = PretokenizerKind::kGpt2);

  // `text` must outlive the pieces.
  void start(std::string_view text) noexcept;

  // The next piece, or false at the end of the text.
  bool next(std::string_view& piece) noexcept;

 private:
  using Scan = const char* (*)(const char* at, const char* end) noexcept;

  bool start_region() noexcept;

  Scan scan_;
  const char* at_ = nullptr;
  const char* valid_ = nullptr;  // the end of the text that is known to be UTF-8
  const char* end_ = nullptr;
};

}  // namespace quern::data
