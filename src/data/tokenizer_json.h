// tokenizer.json, the format of Hugging Face `tokenizers`.
//
//   byte  model BPE of the 256 bytes without merges, pre-tokenizer ByteLevel without its regular expression
//   char  model WordLevel, pre-tokenizer Split after each character; an unknown character is an error there too
//   bpe   model BPE; normalizer, pre-tokenizer, decoder and post-processor of GPT-2, SmolLM, Llama 2, Llama 3 or Qwen
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "data/token_table.h"
#include "data/tokenizer.h"

namespace quern::data {

// The regular expression for splitting characters; a dot would not match line feeds.
inline constexpr std::string_view kEachCharacter = "[\\s\\S]";

// An extra field of added tokens, which Hugging Face ignores there: true for the token that ends a document. An extra
// field at the top of the file would keep `tokenizers` from reading it.
inline constexpr const char* kEndOfTextMark = "end_of_text";

std::string byte_tokenizer_json();
std::string char_tokenizer_json(const TokenTable& characters);
std::string tokenizer_json(const TokenizerParts& parts);

struct ReadOptions {
  std::optional<std::string> end_of_text = {};           // the content of the token that ends a document
  std::optional<std::string> fallback_end_of_text = {};  // the same, if the file is not marked
};

// See Tokenizer::from_json.
std::unique_ptr<Tokenizer> read_tokenizer_json(std::string_view json, std::string_view where,
                                               const ReadOptions& options = {});

// The eos_token of a tokenizer_config.json, if it has one. Error that starts with `where` if it is not JSON.
std::optional<std::string> end_of_text_in_config(std::string_view json, std::string_view where);

}  // namespace quern::data
