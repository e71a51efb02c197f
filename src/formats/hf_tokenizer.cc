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
    const std::string_view end = tokenizer->bytes_of(*tokenizer->end_of_text());
    for (const char* role : {"bos_token", "eos_token", "pad_token"}) json[role] = end;
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
