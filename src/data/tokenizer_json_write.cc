#include <algorithm>
#include <nlohmann/json.hpp>

#include "core/json.h"
#include "data/bpe_model.h"
#include "data/byte_alphabet.h"
#include "data/tokenizer_json.h"
#include "data/tokenizer_json_rules.h"

namespace quern::data {
namespace {

using Json = nlohmann::ordered_json;

Json byte_level(bool use_regex) {
  return {{"type", "ByteLevel"}, {"add_prefix_space", false}, {"trim_offsets", true}, {"use_regex", use_regex}};
}

Json bpe_model() {
  return {{"type", "BPE"},
          {"dropout", nullptr},
          {"unk_token", nullptr},
          {"continuing_subword_prefix", nullptr},
          {"end_of_word_suffix", nullptr},
          {"fuse_unk", false},
          {"byte_fallback", false},
          {"ignore_merges", false},
          {"vocab", Json::object()},
          {"merges", Json::array()}};
}

// Appends without the search for an equal key that ordered_json does, which would be quadratic: keys are distinct here.
void append_entry(Json& vocab, std::string key, int32_t id) {
  vocab.get_ref<Json::object_t&>().emplace_back(std::move(key), id);
}

struct Document {
  Json added = Json::array();
  Json normalizer = nullptr;
  Json pre_tokenizer = nullptr;
  Json post_processor = nullptr;
  Json decoder = nullptr;
  Json model;
};

std::string text_of(Document document) {
  const Json root = {{"version", "1.0"},
                     {"truncation", nullptr},
                     {"padding", nullptr},
                     {"added_tokens", std::move(document.added)},
                     {"normalizer", std::move(document.normalizer)},
                     {"pre_tokenizer", std::move(document.pre_tokenizer)},
                     {"post_processor", std::move(document.post_processor)},
                     {"decoder", std::move(document.decoder)},
                     {"model", std::move(document.model)}};
  return json_text(root, 2) + "\n";
}

Json replace(std::string_view from, std::string_view to) {
  return {{"type", "Replace"}, {"pattern", Json::object({{"String", from}})}, {"content", to}};
}

Json split(std::string_view pattern) {
  return {
      {"type", "Split"}, {"pattern", Json::object({{"Regex", pattern}})}, {"behavior", "Isolated"}, {"invert", false}};
}

Json sequence(const char* name, Json list) { return {{"type", "Sequence"}, {name, std::move(list)}}; }

Json normalizer_json(const TokenizerRules& rules) {
  if (rules.normalizer == NormalizerKind::kNfc) return Json::object({{"type", "NFC"}});
  if (rules.space_prefix != SpacePrefix::kAlways) return nullptr;
  return sequence("normalizers", Json::array({Json::object({{"type", "Prepend"}, {"prepend", kSpaceSymbol}}),
                                              replace(" ", kSpaceSymbol)}));
}

Json metaspace(SpacePrefix prefix) {
  const char* const scheme = prefix == SpacePrefix::kMetaspaceAlways  ? "always"
                             : prefix == SpacePrefix::kMetaspaceFirst ? "first"
                                                                      : "never";
  return {{"type", "Metaspace"}, {"replacement", kSpaceSymbol}, {"prepend_scheme", scheme}, {"split", false}};
}

Json pre_tokenizer_json(const TokenizerRules& rules) {
  switch (rules.pretokenizer) {
    case PretokenizerKind::kNone:
      return rules.space_prefix == SpacePrefix::kAlways ? Json() : metaspace(rules.space_prefix);
    case PretokenizerKind::kGpt2:
      return byte_level(true);
    case PretokenizerKind::kDigitsGpt2:
      return sequence("pretokenizers",
                      Json::array({Json::object({{"type", "Digits"}, {"individual_digits", true}}), byte_level(true)}));
    case PretokenizerKind::kLlama3:
      return sequence("pretokenizers", Json::array({split(kLlama3Pattern), byte_level(false)}));
    case PretokenizerKind::kQwen2:
      return sequence("pretokenizers", Json::array({split(kQwen2Pattern), byte_level(false)}));
  }
  return nullptr;
}

Json decoder_json(const TokenizerRules& rules) {
  if (rules.model == TokenizerModel::kByteLevelBpe) return byte_level(true);
  Json list = Json::array(
      {replace(kSpaceSymbol, " "), Json::object({{"type", "ByteFallback"}}), Json::object({{"type", "Fuse"}})});
  if (rules.strip_space) list.push_back({{"type", "Strip"}, {"content", " "}, {"start", 1}, {"stop", 0}});
  return sequence("decoders", std::move(list));
}

Json template_json(const TokenizerParts& parts) {
  if (!parts.add_bos || !parts.bos) return nullptr;
  const std::string& token = parts.tokens[static_cast<size_t>(*parts.bos)];
  const auto item = [](const char* kind, std::string_view id, int type) {
    return Json::object({{kind, Json::object({{"id", id}, {"type_id", type}})}});
  };
  return {{"type", "TemplateProcessing"},
          {"single", Json::array({item("SpecialToken", token, 0), item("Sequence", "A", 0)})},
          {"pair", Json::array({item("SpecialToken", token, 0), item("Sequence", "A", 0),
                                item("SpecialToken", token, 1), item("Sequence", "B", 1)})},
          {"special_tokens", Json::object({{token, Json::object({{"id", token},
                                                                 {"ids", Json::array({*parts.bos})},
                                                                 {"tokens", Json::array({token})}})}})}};
}

// Whether a reader without the mark would take this token for the end of a document.
bool is_usual_end(const TokenizerParts& parts, int32_t id) {
  const auto is_added = [&](std::string_view content) {
    const auto found = std::ranges::find(parts.tokens, content);
    if (found == parts.tokens.end()) return false;
    const TokenType type = parts.types[static_cast<size_t>(found - parts.tokens.begin())];
    return type == TokenType::kControl || type == TokenType::kUserDefined || type == TokenType::kUnknown;
  };
  const std::string& content = parts.tokens[static_cast<size_t>(id)];
  if (is_added(kEndOfText)) return content == kEndOfText;
  if (parts.model == TokenizerModel::kSentencePieceBpe) return content == "</s>";
  return parts.pretokenizer == PretokenizerKind::kLlama3 && content == "<|end_of_text|>";
}

Json added_tokens_json(const TokenizerParts& parts) {
  Json added = Json::array();
  for (size_t id = 0; id < parts.tokens.size(); ++id) {
    const TokenType type = parts.types[id];
    if (type != TokenType::kControl && type != TokenType::kUserDefined && type != TokenType::kUnknown) continue;
    added.push_back({{"id", id},
                     {"content", parts.tokens[id]},
                     {"single_word", false},
                     {"lstrip", false},
                     {"rstrip", false},
                     {"normalized", false},
                     {"special", type != TokenType::kUserDefined}});
    if (parts.eos == static_cast<int32_t>(id) && !is_usual_end(parts, *parts.eos)) added.back()[kEndOfTextMark] = true;
  }
  return added;
}

}  // namespace

std::string byte_tokenizer_json() {
  Json model = bpe_model();
  for (int byte = 0; byte < 256; ++byte) {
    append_entry(model["vocab"], to_alphabet(std::string(1, static_cast<char>(static_cast<unsigned char>(byte)))),
                 byte);
  }
  return text_of({.pre_tokenizer = byte_level(false), .decoder = byte_level(false), .model = std::move(model)});
}

std::string char_tokenizer_json(const TokenTable& characters) {
  Json vocab = Json::object();
  for (int32_t id = 0; id < characters.size(); ++id) append_entry(vocab, std::string(characters[id]), id);
  // The unknown token has more than one character, so it is not in the vocabulary and unknown text is an error.
  Json model = {{"type", "WordLevel"}, {"vocab", std::move(vocab)}, {"unk_token", "<unknown>"}};
  return text_of(
      {.pre_tokenizer = split(kEachCharacter), .decoder = Json::object({{"type", "Fuse"}}), .model = std::move(model)});
}

// Hugging Face assigns ids after the vocabulary to added tokens outside it, so all tokens are in the vocabulary.
std::string tokenizer_json(const TokenizerParts& parts) {
  Json model = bpe_model();
  if (parts.unk) model["unk_token"] = parts.tokens[static_cast<size_t>(*parts.unk)];
  model["fuse_unk"] = parts.fuse_unknown;
  model["byte_fallback"] = parts.byte_fallback;
  model["ignore_merges"] = parts.ignore_merges;
  // Every version reads "left right"; only newer ones read a pair of strings.
  for (const MergeText& merge : parts.merges) model["merges"].push_back(merge.left + " " + merge.right);
  for (size_t id = 0; id < parts.tokens.size(); ++id) {
    if (parts.types[id] != TokenType::kUnused) append_entry(model["vocab"], parts.tokens[id], static_cast<int32_t>(id));
  }
  Json post = template_json(parts);
  return text_of({.added = added_tokens_json(parts),
                  .normalizer = normalizer_json(parts),
                  .pre_tokenizer = pre_tokenizer_json(parts),
                  .post_processor = std::move(post),
                  .decoder = decoder_json(parts),
                  .model = std::move(model)});
}

}  // namespace quern::data
