// Tokens that are matched in the text first and never split or merged, such as <|endoftext|>.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace quern::data {

struct AddedToken {
  std::string content;  // valid UTF-8, not empty
  int32_t id = 0;
  bool special = true;      // Hugging Face omits special tokens from decoded text by default; Quern includes them
  bool normalized = false;  // matched, in normalised form, after the text was normalised
};

// Immutable and thread-safe.
class AddedTokens {
 public:
  // Contents must be distinct.
  explicit AddedTokens(std::vector<AddedToken> tokens);

  std::span<const AddedToken> list() const noexcept { return tokens_; }
  bool empty() const noexcept { return tokens_.empty(); }

  struct Found {
    size_t at = 0;                      // text.size() if there is none
    const AddedToken* token = nullptr;  // null if there is none
  };

  // The leftmost added token in `text`; the longest if several start there.
  Found find(std::string_view text) const noexcept;

 private:
  std::vector<AddedToken> tokens_;  // sorted by first byte, longer ones first
  struct Range {
    size_t begin = 0;
    size_t end = 0;
  };
  std::array<Range, 256> by_first_byte_{};
  int only_first_byte_ = -1;  // if all tokens start with the same one
};

}  // namespace quern::data
