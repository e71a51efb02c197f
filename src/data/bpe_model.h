// What a BPE tokenizer is made of.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "data/added_tokens.h"
#include "data/bpe_merges.h"
#include "data/tokenizer_parts.h"

namespace quern::data {

// U+2581, which stands for a space in the tokens of SentencePiece.
inline constexpr std::string_view kSpaceSymbol = "\xE2\x96\x81";

struct BpeModel {
  std::vector<std::string> tokens;  // by id: bytes, or text as SentencePiece spells it; for added tokens, their content
  std::vector<Merge> merges;        // in order of rank
  std::vector<AddedToken> added;
  TokenizerRules rules = {};
  std::vector<bool> unused = {};  // by id: not a token; empty if there are none
  std::optional<int32_t> unk = {};
  std::optional<int32_t> bos = {};  // also if no text starts with it
  std::optional<int32_t> pad = {};
  std::optional<int32_t> begin_of_text = {};  // if texts start with one
  std::optional<int32_t> end_of_text = {};    // otherwise the added token <|endoftext|>, if there is one

  bool is_sentence_piece() const noexcept { return rules.model == TokenizerModel::kSentencePieceBpe; }
  bool is_unused(size_t id) const noexcept { return id < unused.size() && unused[id]; }
};

// The byte of a token that is spelled <0x0A>; -1 for others.
int byte_of_token(std::string_view token) noexcept;

// Which ids are added tokens.
std::vector<bool> which_are_added(const BpeModel& model);

}  // namespace quern::data
