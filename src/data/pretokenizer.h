// Cuts text into the pieces that GPT-2's byte-level BPE never merges across: words with the space before them, numbers,
// punctuation, contractions, runs of white space.
#pragma once

#include <cstddef>
#include <memory>
#include <string_view>

struct pcre2_real_match_data_8;

namespace quern::data {

// The pieces are those of GPT-2's regular expression
//   's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
// with letters, numbers and white space as Unicode defines them. In order they are the whole text, and none is empty.
// Letters and numbers are those of the Unicode version of the PCRE2 in use (Debian 12: Unicode 14); a newer one's count
// as punctuation, so that the rare text that has them can get other ids with another PCRE2. It still round-trips.
//
// Text that is not UTF-8 is cut at the bytes that are not part of a valid character: a run of such bytes is a piece,
// and the text on each side of it is cut as if it stood alone.
//
// One thread at a time; the compiled expression is shared. Time is linear in the text, whatever it holds.
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
