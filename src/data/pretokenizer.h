// Splits text into pieces that GPT-2's byte-level BPE never merges across: words with the preceding space, numbers,
// punctuation, contractions, runs of white space.
#pragma once

#include <cstddef>
#include <memory>
#include <string_view>

struct pcre2_real_match_data_8;

namespace quern::data {

// The pieces are those of GPT-2's regular expression
//   's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
// with letters, numbers and white space as defined by Unicode. Concatenated they are the whole text, and none is empty.
// The Unicode version is that of the PCRE2 library (Debian 12: Unicode 14); letters and numbers of newer versions count
// as punctuation, so the rare text that contains them can get different ids with another PCRE2. It still round-trips.
//
// Text that is not UTF-8 is split at bytes that are not part of a valid character: a run of such bytes is a piece, and
// the text on each side is split on its own.
//
// Not thread-safe; the compiled expression is shared. Time is linear in the length of any text.
class Pretokenizer {
 public:
  Pretokenizer();

  // `text` must outlive the pieces.
  void start(std::string_view text) noexcept;

  // The next piece, or false at the end of the text.
  bool next(std::string_view& piece);

 private:
  struct FreeMatch {
    void operator()(pcre2_real_match_data_8* match) const noexcept;
  };

  std::string_view take(size_t length) noexcept;
  size_t match() const;

  std::unique_ptr<pcre2_real_match_data_8, FreeMatch> match_;
  std::string_view rest_;
  size_t valid_ = 0;  // bytes at the start of rest_ that are known to be UTF-8
};

}  // namespace quern::data
