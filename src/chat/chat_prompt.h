// What a model is given to answer a conversation, and where its answer ends.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "chat/chat_template.h"
#include "core/json.h"
#include "data/tokenizer.h"

namespace quern::chat {

// The tokens of the messages and of the generation prompt after them: those that precede the answer in the training
// sequence that mark() makes of the same conversation. Earlier answers are spans of their own, as they were when the
// model said them, so a prompt continues the tokens of the one before it if the template allows. Error if the template
// refuses the messages, or if they are no tokens at all.
std::vector<int32_t> chat_prompt(const nlohmann::ordered_json& messages, const ChatTemplate& chat_template,
                                 const data::Tokenizer& tokenizer);

// What a template writes around the content of an answer.
struct AnswerForm {
  std::string before;                     // between the generation prompt and the content: a space, for some templates
  std::string after;                      // after the content, without the end token or else white space at the end
  std::optional<int32_t> end_token = {};  // the added token that ends the turn
};

// Found by rendering an answer. All fields are empty if the template does not show its content as it is.
AnswerForm answer_form(const ChatTemplate& chat_template, const data::Tokenizer& tokenizer);

}  // namespace quern::chat
