// The turns of the assistant in a conversation, as a chat template writes them.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "chat/chat_template.h"
#include "core/json.h"
#include "data/tokenizer.h"

namespace quern::chat {

// Messages, and the tools that they may use.
struct Dialogue {
  const nlohmann::ordered_json& messages;
  const nlohmann::ordered_json& tools;  // an array, or null
};

// A conversation up to the end of a turn of the assistant.
struct Turn {
  std::string text;
  size_t begin = 0;  // of what the assistant adds to its generation prompt: the rest of the text
};

// The longest added token that `text` ends with; null if there is none.
const data::AddedToken* added_token_at_end(std::string_view text, const data::Tokenizer& tokenizer);

// The first `count` messages as text.
std::string render_first(const Dialogue& dialogue, size_t count, bool add_generation_prompt,
                         const ChatTemplate& chat_template);

// The turn that message `index` is. White space after an added token at the end is not part of it: the model stops at
// that token. Error if the template refuses the messages, has no generation prompt or does not continue it.
Turn render_turn(const Dialogue& dialogue, size_t index, const ChatTemplate& chat_template,
                 const data::Tokenizer& tokenizer);

// Whether every turn reads the same within the last one as it does on its own. Some templates write earlier turns in
// another way than the last.
bool continue_each_other(const std::vector<Turn>& turns);

}  // namespace quern::chat
