#include <algorithm>
#include <nlohmann/json.hpp>

#include "core/json.h"
#include "data/byte_alphabet.h"
#include "data/tokenizer_json.h"

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

std::string document(Json added, Json pre_tokenizer, Json decoder, Json model) {
  const Json root = {{"version", "1.0"},          {"truncation", nullptr},
                     {"padding", nullptr},        {"added_tokens", std::move(added)},
                     {"normalizer", nullptr},     {"pre_tokenizer", std::move(pre_tokenizer)},
                     {"post_processor", nullptr}, {"decoder", std::move(decoder)},
                     {"model", std::move(model)}};
  return json_text(root, 2) + "\n";
}

Json added_token(const AddedToken& token) {
  return {{"id", token.id},  {"content", token.content}, {"single_word", false},    {"lstrip", false},
          {"rstrip", false}, {"normalized", false},      {"special", token.special}};
}

}  // namespace

std::string byte_tokenizer_json() {
  Json model = bpe_model();
  for (int byte = 0; byte < 256; ++byte) {
    append_entry(model["vocab"], to_alphabet(std::string(1, static_cast<char>(static_cast<unsigned char>(byte)))),
                 byte);
  }
  return document(Json::array(), byte_level(false), byte_level(false), std::move(model));
}

std::string char_tokenizer_json(const TokenTable& characters) {
  Json vocab = Json::object();
  for (int32_t id = 0; id < characters.size(); ++id) append_entry(vocab, std::string(characters[id]), id);
  // The unknown token has more than one character, so it is not in the vocabulary and unknown text is an error.
  Json model = {{"type", "WordLevel"}, {"vocab", std::move(vocab)}, {"unk_token", "<unknown>"}};
  Json split = {{"type", "Split"},
                {"pattern", Json::object({{"Regex", kEachCharacter}})},
                {"behavior", "Isolated"},
                {"invert", false}};
  return document(Json::array(), std::move(split), Json::object({{"type", "Fuse"}}), std::move(model));
}

std::string bpe_tokenizer_json(const BpeTokenizer& tokenizer) {
  std::vector<std::string> keys;
  keys.reserve(static_cast<size_t>(tokenizer.vocabulary_size()));
  for (int32_t id = 0; id < tokenizer.vocabulary_size(); ++id) keys.push_back(to_alphabet(tokenizer.bytes_of(id)));
  std::vector<AddedToken> added(tokenizer.added_tokens().begin(), tokenizer.added_tokens().end());
  // Hugging Face assigns ids after the vocabulary to added tokens outside it, so added tokens must be in the
  // vocabulary.
  std::ranges::sort(added, {}, &AddedToken::id);
  for (const AddedToken& token : added) keys[static_cast<size_t>(token.id)] = token.content;

  Json model = bpe_model();
  // Every version reads "left right"; only newer ones read a pair of strings.
  for (const Merge& merge : tokenizer.merges()) {
    model["merges"].push_back(keys[static_cast<size_t>(merge.left)] + " " + keys[static_cast<size_t>(merge.right)]);
  }
  for (size_t id = 0; id < keys.size(); ++id) append_entry(model["vocab"], keys[id], static_cast<int32_t>(id));
  Json added_json = Json::array();
  for (const AddedToken& token : added) added_json.push_back(added_token(token));
  return document(std::move(added_json), byte_level(true), byte_level(true), std::move(model));
}

}  // namespace quern::data
