// Small vocabularies of the kinds that published models have.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "data/byte_alphabet.h"
#include "data/tokenizer.h"

namespace quern::data::test {

inline void add_token(TokenizerParts& parts, std::string token, TokenType type = TokenType::kNormal) {
  parts.tokens.push_back(std::move(token));
  parts.types.push_back(type);
}

inline int32_t id_of(const TokenizerParts& parts, std::string_view token) {
  const auto found = std::ranges::find(parts.tokens, token);
  return found == parts.tokens.end() ? -1 : static_cast<int32_t>(found - parts.tokens.begin());
}

// Merges of two tokens of the vocabulary; the result becomes a token.
inline void add_merge(TokenizerParts& parts, std::string left, std::string right) {
  if (id_of(parts, left + right) < 0) add_token(parts, left + right);
  parts.merges.push_back({std::move(left), std::move(right)});
}

// Byte-level: special tokens in front, as in SmolLM2, then the bytes, then merges.
inline TokenizerParts byte_level_parts(PretokenizerKind kind) {
  TokenizerParts parts;
  parts.pretokenizer = kind;
  if (kind == PretokenizerKind::kQwen2) parts.normalizer = NormalizerKind::kNfc;
  add_token(parts, "<|endoftext|>", TokenType::kControl);
  add_token(parts, "<|im_start|>", TokenType::kControl);
  for (const uint8_t byte : bytes_in_alphabet_order())
    add_token(parts, to_alphabet(std::string(1, static_cast<char>(byte))));
  const std::string space = to_alphabet(" "), line = to_alphabet("\n");
  add_merge(parts, "h", "e");
  add_merge(parts, space, "t");
  add_merge(parts, space + "t", "he");
  add_merge(parts, "1", "2");
  add_merge(parts, "12", "3");
  add_merge(parts, ".", line);
  add_merge(parts, to_alphabet("\xc3"), to_alphabet("\xa9"));
  add_token(parts, "<think>", TokenType::kUserDefined);
  parts.eos = 0;
  if (kind == PretokenizerKind::kLlama3) {
    parts.ignore_merges = parts.add_bos = true;
    parts.bos = 1;
    add_token(parts, "xyz");  // no merge makes it
  }
  return parts;
}

// SentencePiece with byte fallback, as in Llama 2: <unk>, <s>, </s>, the bytes, merges, characters.
inline TokenizerParts sentence_piece_parts(SpacePrefix prefix = SpacePrefix::kAlways) {
  TokenizerParts parts = parts_for_gguf("llama", "default", "test");
  parts.space_prefix = prefix;
  parts.strip_space = prefix != SpacePrefix::kNever;
  add_token(parts, "<unk>", TokenType::kUnknown);
  add_token(parts, "<s>", TokenType::kControl);
  add_token(parts, "</s>", TokenType::kControl);
  for (int byte = 0; byte < 256; ++byte) add_token(parts, fmt::format("<0x{:02X}>", byte), TokenType::kByte);
  const std::string space = "\u2581";
  for (const char* character : {"\u2581", "t", "h", "e", "a", "b", "c", ".", "\u00e9", "\u4e2d", "<", "/", "s", ">"}) {
    add_token(parts, character);
  }
  add_merge(parts, space, "t");
  add_merge(parts, "h", "e");
  add_merge(parts, space + "t", "he");
  add_merge(parts, "a", "b");
  add_merge(parts, space, "a");
  add_merge(parts, space, space);
  add_merge(parts, space + space, space + space);
  add_merge(parts, "\u4e2d", "\u00e9");
  parts.unk = 0;
  parts.bos = 1;
  parts.eos = 2;
  return parts;
}

}  // namespace quern::data::test
