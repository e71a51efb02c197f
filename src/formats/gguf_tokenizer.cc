#include "formats/gguf_tokenizer.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <unordered_set>

#include "core/error.h"
#include "core/json.h"
#include "core/text.h"
#include "data/tokenizer_parts.h"
#include "formats/model_files.h"

namespace quern::formats {
namespace {

using data::MergeText;
using data::TokenizerParts;
using data::TokenType;

std::string key(std::string_view name) { return fmt::format("tokenizer.ggml.{}", name); }

std::optional<int32_t> id_at(const GgufFile& file, std::string_view name, size_t vocabulary) {
  if (!file.contains(key(name))) return std::nullopt;
  const uint64_t id = file.whole(key(name), std::numeric_limits<uint32_t>::max());  // 2^32 - 1 stands for none
  return id < vocabulary ? std::optional(static_cast<int32_t>(id)) : std::nullopt;
}

std::vector<TokenType> read_types(const GgufFile& file, size_t count) {
  std::vector<TokenType> types(count, TokenType::kNormal);
  if (!file.contains(key("token_type"))) return types;
  const std::vector<int32_t> numbers = file.whole_list(key("token_type"));
  if (numbers.size() != count) file.fail(key("token_type"), fmt::format("as many as tokens, {}", count));
  for (size_t i = 0; i < count; ++i) {
    if (numbers[i] < 1 || numbers[i] > 6) file.fail(key("token_type"), "types of 1 to 6");
    types[i] = static_cast<TokenType>(numbers[i]);
  }
  return types;
}

// "left right": the first space that is not at the start separates them.
std::vector<MergeText> read_merges(const GgufFile& file) {
  std::vector<MergeText> merges;
  for (const std::string_view text : file.texts(key("merges"))) {
    const size_t space = text.find(' ', 1);
    if (space == std::string_view::npos) {
      throw Error("[gguf] {}: key {}: expected two tokens with a space between them, found {}", file.name(),
                  in_quotes(key("merges")), in_quotes(text));
    }
    merges.push_back({std::string(text.substr(0, space)), std::string(text.substr(space + 1))});
  }
  return merges;
}

// chat_template.jinja, or the template in tokenizer_config.json: a text, or a list of named ones.
std::string chat_template(std::span<const checkpoint::ExtraFile> files) {
  if (const std::string* text = find_file(files, kChatTemplateFile)) return *text;
  const std::string* config = find_file(files, kTokenizerConfigFile);
  if (config == nullptr) return {};
  const nlohmann::json json = parse_json(*config);
  if (!json.is_object() || !json.contains("chat_template")) return {};
  const nlohmann::json& found = json["chat_template"];
  if (found.is_string()) return found.get<std::string>();
  if (!found.is_array()) return {};
  for (const nlohmann::json& one : found) {
    if (one.is_object() && one.value("name", nlohmann::json()) == "default" && one.contains("template") &&
        one["template"].is_string()) {
      return one["template"].get<std::string>();
    }
  }
  return {};
}

// llama.cpp aborts on a token that is there twice, and wants as many as the token table has rows.
void pad_tokens(TokenizerParts& parts, size_t vocabulary) {
  const std::unordered_set<std::string> known(parts.tokens.begin(), parts.tokens.end());
  while (parts.tokens.size() < vocabulary) {
    std::string name = fmt::format("[PAD{}]", parts.tokens.size());
    while (known.contains(name)) name += "_";
    parts.tokens.push_back(std::move(name));
    parts.types.push_back(TokenType::kUnused);
  }
}

void add_vocabulary(const TokenizerParts& parts, GgufKeys& keys) {
  keys.add_texts(key("tokens"), parts.tokens);
  std::vector<int32_t> types;
  for (const TokenType type : parts.types) types.push_back(static_cast<int32_t>(type));
  keys.add_whole_list(key("token_type"), std::move(types));
  if (parts.model == data::TokenizerModel::kSentencePieceBpe) {
    keys.add_real_list(key("scores"), data::scores_from_merges(parts));
    return;
  }
  std::vector<std::string> merges;
  for (const MergeText& merge : parts.merges) merges.push_back(fmt::format("{} {}", merge.left, merge.right));
  keys.add_texts(key("merges"), std::move(merges));
}

// llama.cpp takes token 11 for bos and eos if a file names none, so both are always there.
void add_special_tokens(const TokenizerParts& parts, const SpecialTokens& known, GgufKeys& keys,
                        std::vector<std::string>& remarks) {
  const auto first_of = [](const std::vector<int32_t>& ids) {
    return ids.empty() ? std::nullopt : std::optional(ids.front());
  };
  const std::optional<int32_t> eos = parts.eos ? parts.eos : first_of(known.eos);
  const int32_t end = eos.value_or(0);
  if (!eos) {
    remarks.push_back(
        fmt::format("the tokenizer has no end of text, but llama.cpp needs one: token 0, {}; run it "
                    "with --ignore-eos",
                    in_quotes(parts.tokens[0])));
  }
  const std::optional<int32_t> bos = parts.bos ? parts.bos : known.bos;
  const std::optional<int32_t> pad = parts.pad ? parts.pad : known.pad;
  keys.add_whole(key("bos_token_id"), static_cast<uint64_t>(bos.value_or(end)));
  keys.add_whole(key("eos_token_id"), static_cast<uint64_t>(end));
  if (parts.unk) keys.add_whole(key("unknown_token_id"), static_cast<uint64_t>(*parts.unk));
  if (pad) keys.add_whole(key("padding_token_id"), static_cast<uint64_t>(*pad));
  keys.add_flag(key("add_bos_token"), parts.add_bos);
  keys.add_flag(key("add_eos_token"), false);
  keys.add_flag(key("add_space_prefix"), parts.space_prefix != data::SpacePrefix::kNever);
}

}  // namespace

std::unique_ptr<data::Tokenizer> read_gguf_tokenizer(const GgufFile& file) {
  if (!file.contains(key("tokens"))) return nullptr;
  const std::string where = fmt::format("[gguf] {}", file.name());
  const std::string_view pre = file.contains(key("pre")) ? file.text(key("pre")) : "default";
  TokenizerParts parts = data::parts_for_gguf(file.text(key("model")), pre, where);
  for (const std::string_view token : file.texts(key("tokens"))) parts.tokens.emplace_back(token);
  parts.types = read_types(file, parts.tokens.size());
  if (parts.model == data::TokenizerModel::kSentencePieceBpe) {
    parts.merges = data::merges_from_scores(parts.tokens, parts.types, file.real_list(key("scores")), where);
  } else {
    parts.merges = read_merges(file);
  }
  parts.bos = id_at(file, "bos_token_id", parts.tokens.size());
  parts.eos = id_at(file, "eos_token_id", parts.tokens.size());
  parts.unk = id_at(file, "unknown_token_id", parts.tokens.size());
  parts.pad = id_at(file, "padding_token_id", parts.tokens.size());
  if (file.contains(key("add_bos_token"))) parts.add_bos = file.flag(key("add_bos_token"));
  if (file.contains(key("add_space_prefix")) && !file.flag(key("add_space_prefix"))) {
    parts.space_prefix = data::SpacePrefix::kNever;
  }
  return data::make_tokenizer(std::move(parts), where);
}

SpecialTokens read_gguf_special_tokens(const GgufFile& file, size_t vocabulary) {
  SpecialTokens tokens{
      .bos = id_at(file, "bos_token_id", vocabulary), .eos = {}, .pad = id_at(file, "padding_token_id", vocabulary)};
  for (const char* name : {"eos_token_id", "eot_token_id"}) {
    const auto id = id_at(file, name, vocabulary);
    if (id && std::find(tokens.eos.begin(), tokens.eos.end(), *id) == tokens.eos.end()) tokens.eos.push_back(*id);
  }
  return tokens;
}

std::vector<checkpoint::ExtraFile> model_files_from_gguf(const GgufFile& file, const data::Tokenizer* tokenizer,
                                                         const SpecialTokens& tokens, size_t context) {
  std::vector<checkpoint::ExtraFile> files;
  if (tokenizer != nullptr) {
    nlohmann::ordered_json json = {{"tokenizer_class", "PreTrainedTokenizerFast"},
                                   {"model_max_length", context},
                                   {"clean_up_tokenization_spaces", false}};
    const auto add = [&](const char* role, const std::optional<int32_t>& id) {
      if (id && *id < tokenizer->vocabulary_size()) json[role] = std::string(tokenizer->bytes_of(*id));
    };
    add("bos_token", tokens.bos);
    if (!tokens.eos.empty()) add("eos_token", tokens.eos.front());
    add("pad_token", tokens.pad);
    add("unk_token", id_at(file, "unknown_token_id", static_cast<size_t>(tokenizer->vocabulary_size())));
    files.push_back({.name = kTokenizerConfigFile, .text = json_text(json, 2) + "\n"});
  }
  if (std::string text = generation_config(tokens); !text.empty()) {
    files.push_back({.name = kGenerationConfigFile, .text = std::move(text)});
  }
  if (file.contains("tokenizer.chat_template")) {
    const std::string_view text = file.text("tokenizer.chat_template");
    if (text.size() > kMaxModelFileBytes || !is_utf8(text)) {
      file.fail("tokenizer.chat_template", fmt::format("at most {} bytes of UTF-8", kMaxModelFileBytes));
    }
    files.push_back({.name = kChatTemplateFile, .text = std::string(text)});
  }
  return files;
}

void add_tokenizer_keys(const data::Tokenizer* tokenizer, size_t vocabulary,
                        std::span<const checkpoint::ExtraFile> files, GgufKeys& keys,
                        std::vector<std::string>& remarks) {
  if (tokenizer == nullptr) {
    keys.add_text(key("model"), "no_vocab");
    remarks.push_back("the run has no tokenizer.json, so the file has no tokenizer");
    return;
  }
  TokenizerParts parts = tokenizer->parts();
  pad_tokens(parts, vocabulary);
  const data::GgufTokenizerNames names = data::gguf_names(parts);
  keys.add_text(key("model"), std::string(names.model));
  keys.add_text(key("pre"), std::string(names.pre));
  add_vocabulary(parts, keys);
  add_special_tokens(parts, special_tokens(files, tokenizer, vocabulary), keys, remarks);
  if (std::string text = chat_template(files); !text.empty()) keys.add_text("tokenizer.chat_template", std::move(text));
}

}  // namespace quern::formats
