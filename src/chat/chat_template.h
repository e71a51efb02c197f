// How a model's conversations are written as text: its chat template.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "chat/jinja.h"
#include "core/json.h"

namespace quern::chat {

// The special tokens that templates can write, as text: the variables bos_token, eos_token, pad_token and unk_token.
// Those that a model does not have are undefined in templates.
struct TokenTexts {
  std::optional<std::string> bos = {};
  std::optional<std::string> eos = {};
  std::optional<std::string> pad = {};
  std::optional<std::string> unk = {};
};

// Rendering is thread-safe.
class ChatTemplate {
 public:
  // `name` is used in messages. Error if `text` is not a template.
  ChatTemplate(std::string_view text, std::string name, TokenTexts tokens = {});

  // The built-in template ChatML, for models that have none:
  //   <|im_start|>ROLE
  //   CONTENT<|im_end|>
  // with <|im_start|>assistant and a line break as the generation prompt. It refuses tools.
  static ChatTemplate chatml();

  // Writes messages (an array of objects with "role" and "content"), followed by what starts an answer of the assistant
  // if `add_generation_prompt`. `tools` is an array, or null. Error from the template, which may refuse an order of
  // roles.
  std::string render(const nlohmann::ordered_json& messages, bool add_generation_prompt,
                     const nlohmann::ordered_json& tools = nullptr) const;

  const std::string& text() const { return text_; }

  // Templates that write the date, such as those of Llama 3, then write 26 Jul 2024, which they also do where they are
  // not told the date. For training: the same data must give the same tokens on any day.
  void fix_date();

 private:
  std::string text_;
  JinjaTemplate template_;
  nlohmann::ordered_json variables_;  // of the special tokens
};

// The texts of a model's files, null for those that it does not have.
struct TemplateFiles {
  std::string folder;                             // for messages
  const std::string* chat_template = nullptr;     // chat_template.jinja
  const std::string* tokenizer_config = nullptr;  // tokenizer_config.json
  const std::string* special_tokens = nullptr;    // special_tokens_map.json
};

// The special tokens in tokenizer_config.json or, for those that it does not name, in special_tokens_map.json. A token
// is a string, or an object with its text in "content".
TokenTexts token_texts(const TemplateFiles& files);

// The template of chat_template.jinja or, without that file, of tokenizer_config.json: a string, or a list of named
// ones, of which this is "default". Empty if the model has none. Error if there are templates but no default, or the
// text is not a template.
std::optional<ChatTemplate> load_chat_template(const TemplateFiles& files);

}  // namespace quern::chat
