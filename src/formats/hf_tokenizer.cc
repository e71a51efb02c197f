#include "formats/hf_tokenizer.h"

#include "core/json.h"
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

}  // namespace

std::vector<checkpoint::ExtraFile> hf_tokenizer_files(const data::Tokenizer* tokenizer, size_t context,
                                                      std::span<const checkpoint::ExtraFile> files) {
  std::vector<checkpoint::ExtraFile> all;
  if (tokenizer != nullptr) all.push_back({.name = "tokenizer.json", .text = tokenizer->to_json()});
  if (find_file(files, kTokenizerConfigFile) == nullptr) {
    all.push_back({.name = kTokenizerConfigFile, .text = config_json(tokenizer, context)});
  }
  all.insert(all.end(), files.begin(), files.end());
  return all;
}

}  // namespace quern::formats
