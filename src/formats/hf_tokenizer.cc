#include "formats/hf_tokenizer.h"

#include <fmt/format.h>

#include "core/json.h"
#include "data/tokenizer_json.h"
#include "formats/model_files.h"

namespace quern::formats {
namespace {

// A text longer than the context is the only thing that transformers warns about. It would also remove spaces before
// punctuation in decoded text by default, which changes the text.
std::string config_json(const data::Tokenizer* tokenizer, size_t context) {
  nlohmann::ordered_json json = {{"tokenizer_class", "PreTrainedTokenizerFast"},
                                 {"model_max_length", context},
                                 {"clean_up_tokenization_spaces", false}};
  if (tokenizer != nullptr && tokenizer->end_of_text()) {
    const auto token = [&](int32_t id) { return std::string(tokenizer->bytes_of(id)); };
    const int32_t end = *tokenizer->end_of_text();
    json["bos_token"] = token(tokenizer->begin_of_text().value_or(end));
    for (const char* role : {"eos_token", "pad_token"}) json[role] = token(end);
  }
  return json_text(json, 2) + "\n";
}

// The mark of the token that ends a document is Quern's own: tokenizer_config.json has the same, and the `tokenizers`
// library prints a line about fields that it does not know.
std::string without_mark(std::string text) {
  if (text.find(fmt::format("\"{}\"", data::kEndOfTextMark)) == std::string::npos) return text;
  nlohmann::ordered_json json = parse_ordered_json(text);
  if (!json.is_object() || !json.contains("added_tokens") || !json["added_tokens"].is_array()) return text;
  bool marked = false;
  for (auto& token : json["added_tokens"]) marked |= token.is_object() && token.erase(data::kEndOfTextMark) > 0;
  return marked ? json_text(json, 2) + "\n" : text;
}

}  // namespace

std::vector<checkpoint::ExtraFile> hf_tokenizer_files(const data::Tokenizer* tokenizer, size_t context,
                                                      std::span<const checkpoint::ExtraFile> files) {
  std::vector<checkpoint::ExtraFile> all;
  if (tokenizer != nullptr) all.push_back({.name = "tokenizer.json", .text = without_mark(tokenizer->to_json())});
  if (find_file(files, kTokenizerConfigFile) == nullptr) {
    all.push_back({.name = kTokenizerConfigFile, .text = config_json(tokenizer, context)});
  }
  all.insert(all.end(), files.begin(), files.end());
  return all;
}

}  // namespace quern::formats
