#include "formats/chat_template_files.h"

#include <vector>

#include "core/error.h"
#include "core/files.h"
#include "formats/model_files.h"

namespace quern::formats {
namespace {

chat::ChatTemplate read_template(const std::string& file, chat::TokenTexts tokens) {
  const std::string text = read_file(file, kMaxModelFileBytes);
  if (!is_utf8(text)) throw Error("[template] {}: expected UTF-8, found other bytes", file);
  return chat::ChatTemplate(text, file, std::move(tokens));
}

}  // namespace

std::optional<chat::ChatTemplate> choose_chat_template(const std::string& chosen, const std::filesystem::path& folder) {
  if (chosen == "chatml") return chat::ChatTemplate::chatml();
  std::vector<checkpoint::ExtraFile> files;
  if (!folder.empty()) files = read_model_files(folder);
  const chat::TemplateFiles texts{.folder = folder.string(),
                                  .chat_template = find_file(files, kChatTemplateFile),
                                  .tokenizer_config = find_file(files, kTokenizerConfigFile),
                                  .special_tokens = find_file(files, kSpecialTokensFile)};
  return chosen.empty() ? chat::load_chat_template(texts) : read_template(chosen, chat::token_texts(texts));
}

}  // namespace quern::formats
