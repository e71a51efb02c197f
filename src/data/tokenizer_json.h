// tokenizer.json, the format of Hugging Face `tokenizers`.
//
//   byte  model BPE of the 256 bytes without merges, pre-tokenizer ByteLevel without its regular expression
//   char  model WordLevel, pre-tokenizer Split after each character; an unknown character is an error there too
//   bpe   model BPE, pre-tokenizer ByteLevel with its regular expression (GPT-2's)
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "data/bpe_tokenizer.h"
#include "data/token_table.h"
#include "data/tokenizer.h"

namespace quern::data {

// The regular expression for splitting characters; a dot would not match line feeds.
inline constexpr std::string_view kEachCharacter = "[\\s\\S]";

std::string byte_tokenizer_json();
std::string char_tokenizer_json(const TokenTable& characters);
std::string bpe_tokenizer_json(const BpeTokenizer& tokenizer);

// See Tokenizer::from_json.
std::unique_ptr<Tokenizer> read_tokenizer_json(std::string_view json, std::string_view where);

}  // namespace quern::data
