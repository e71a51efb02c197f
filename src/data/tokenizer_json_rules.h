// The normalizer, pre-tokenizer, post-processor and decoder of a tokenizer.json with a BPE model.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "data/tokenizer_json_node.h"
#include "data/tokenizer_parts.h"

namespace quern::data {

// Regular expressions of pre-tokenizers, recognised by their text and split by pretokenizer.h.
inline constexpr std::string_view kGpt2Pattern =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";
inline constexpr std::string_view kLlama3Pattern =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
inline constexpr std::string_view kQwen2Pattern =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";

// The rules of the file `root`. Error that names what is not known or not supported. The pre-tokenizer is kNone in a
// byte-level model if it does not split: a byte tokenizer.
TokenizerRules read_rules(const JsonNode& root);

// The id that the post-processor puts in front of a text, if any. Error if it does anything else.
std::optional<int32_t> read_begin_of_text(const JsonNode& root);

}  // namespace quern::data
