// Cuts the text of a SentencePiece tokenizer, which has no pre-tokenizer: the whole text is one word there.
#pragma once

#include <array>
#include <bitset>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <unordered_set>

#include "data/bpe_model.h"

namespace quern::data {

// A merge across the border of two characters results in a token that contains them next to each other. So text can be
// cut between two characters that are not neighbours in the result of any merge, and the pieces merged separately:
// mostly words, which a cache knows. Exact for any merges. Immutable and thread-safe.
class CharacterCuts {
 public:
  // The model must be checked (bpe_check.h).
  explicit CharacterCuts(const BpeModel& model);

  // The length of the first piece of `text`, which must not be empty. A space counts as U+2581.
  size_t piece_length(std::string_view text) const noexcept;

 private:
  bool are_neighbours(uint32_t left, uint32_t right) const noexcept;

  bool whole_;  // never cut: consecutive unknown characters, wherever they are, become one token
  std::array<std::bitset<128>, 128> ascii_{};
  std::unordered_set<uint64_t> others_;
};

}  // namespace quern::data
