// Tokens that are found in the text before anything else and never cut or merged, such as <|endoftext|>.
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
  bool special = true;  // Hugging Face leaves special tokens out of decoded text by default; we keep all
};

// Immutable; any thread.
class AddedTokens {
 public:
  // Contents must be distinct.
  explicit AddedTokens(std::vector<AddedToken> tokens);

  std::span<const AddedToken> list() const noexcept { return tokens_; }

  struct Found {
    size_t at = 0;                      // text.size() when there is none
    const AddedToken* token = nullptr;  // null when there is none
  };

  // The first in `text`, and of those that start there the longest.
  Found find(std::string_view text) const noexcept;

 private:
  std::vector<AddedToken> tokens_;  // by first byte, longer ones first
  struct Range {
    size_t begin = 0;
    size_t end = 0;
  };
  std::array<Range, 256> by_first_byte_{};
};

}  // namespace quern::data
