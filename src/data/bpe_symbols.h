// The tokens that merging starts from: a token for each byte (GPT-2) or for each character (SentencePiece).
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "data/bpe_model.h"

namespace quern::data {

// Immutable and thread-safe.
class BpeSymbols {
 public:
  // The model must be checked (bpe_check.h).
  explicit BpeSymbols(const BpeModel& model);

  // Appends the tokens of the bytes or characters of `text`. What has no token becomes `unk`, or is left out if there
  // is none, as in Hugging Face `tokenizers`. SentencePiece: a space is the token U+2581, and a character without a
  // token becomes its bytes, if the model has byte fallback.
  void append(std::string_view text, std::vector<int32_t>& ids) const;

 private:
  static constexpr int32_t kNone = -1;

  void append_characters(std::string_view text, std::vector<int32_t>& ids) const;
  void append_unknown(bool follows_unknown, std::vector<int32_t>& ids) const;

  bool characters_;
  bool fuse_unknown_;
  int32_t unk_;
  std::array<int32_t, 256> of_byte_;
  std::array<int32_t, 128> of_ascii_{};                 // SentencePiece only
  std::unordered_map<uint32_t, int32_t> of_character_;  // beyond ASCII
};

}  // namespace quern::data
