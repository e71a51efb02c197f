// Files beside an imported model that say how to use it: special tokens, settings for generation, the chat template.
// They stay with the run, with the runs that start from it, and with its exports, unchanged.
#pragma once

#include <array>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "checkpoint/checkpoint.h"
#include "core/json.h"
#include "data/tokenizer.h"
#include "formats/hf_config.h"

namespace quern::formats {

inline constexpr const char* kTokenizerConfigFile = "tokenizer_config.json";
inline constexpr const char* kGenerationConfigFile = "generation_config.json";
inline constexpr const char* kChatTemplateFile = "chat_template.jinja";
inline constexpr const char* kSpecialTokensFile = "special_tokens_map.json";
inline constexpr std::array<const char*, 4> kModelFiles = {kTokenizerConfigFile, kGenerationConfigFile,
                                                           kChatTemplateFile, kSpecialTokensFile};
inline constexpr size_t kMaxModelFileBytes = size_t{16} << 20;  // some tokenizer_config.json list 100,000 tokens

bool is_model_file(std::string_view name);

// Those of them that are in `folder`. Error if one is too large, is not UTF-8 or, for the JSON files, is not an object.
std::vector<checkpoint::ExtraFile> read_model_files(const std::filesystem::path& folder);

// The text of one of the files; null if it is not there.
const std::string* find_file(std::span<const checkpoint::ExtraFile> files, std::string_view name);

// bos_token_id, eos_token_id (one or a list) and pad_token_id of a JSON object; ids that are not below `vocabulary` are
// left out.
SpecialTokens read_special_tokens(const nlohmann::json& json, size_t vocabulary);

// The ids of generation_config.json among `files`; without that file, the tokenizer's end of text, which also starts
// generation without a prompt. `tokenizer` may be null.
SpecialTokens special_tokens(std::span<const checkpoint::ExtraFile> files, const data::Tokenizer* tokenizer,
                             size_t vocabulary);

// A generation_config.json with these ids; empty if there are none.
std::string generation_config(const SpecialTokens& tokens);

}  // namespace quern::formats
