#include "chat/turns.h"

#include <algorithm>

#include "core/error.h"
#include "core/text.h"

namespace quern::chat {
namespace {

using data::AddedToken;
using data::Tokenizer;
using Json = nlohmann::ordered_json;

// The length of `text` without white space after an added token at its end.
size_t length_of_turn(std::string_view text, const Tokenizer& tokenizer) {
  const size_t last = text.find_last_not_of(" \t\r\n");
  const size_t length = last == std::string_view::npos ? 0 : last + 1;
  return added_token_at_end(text.substr(0, length), tokenizer) != nullptr ? length : text.size();
}

void check_continues(std::string_view prompt, std::string_view whole) {
  if (prompt.empty()) throw Error("expected a generation prompt, found none: a model cannot start with its own words");
  const auto [in_prompt, in_whole] = std::ranges::mismatch(prompt, whole);
  if (in_prompt == prompt.end()) return;
  throw Error("expected the template to continue its own generation prompt, found {} where the prompt has {}",
              in_quotes({in_whole, whole.end()}, 40), in_quotes({in_prompt, prompt.end()}, 40));
}

}  // namespace

const AddedToken* added_token_at_end(std::string_view text, const Tokenizer& tokenizer) {
  const AddedToken* longest = nullptr;
  for (const AddedToken& token : tokenizer.added_tokens()) {
    const bool longer = longest == nullptr || token.content.size() > longest->content.size();
    if (longer && text.ends_with(token.content)) longest = &token;
  }
  return longest;
}

std::string render_first(const Dialogue& dialogue, size_t count, bool add_generation_prompt,
                         const ChatTemplate& chat_template) {
  const auto begin = dialogue.messages.begin();
  return chat_template.render(Json(Json::array_t(begin, begin + static_cast<ptrdiff_t>(count))), add_generation_prompt,
                              dialogue.tools);
}

Turn render_turn(const Dialogue& dialogue, size_t index, const ChatTemplate& chat_template,
                 const Tokenizer& tokenizer) {
  const std::string prompt = render_first(dialogue, index, true, chat_template);
  Turn turn{.text = render_first(dialogue, index + 1, false, chat_template), .begin = prompt.size()};
  check_continues(prompt, turn.text);
  turn.text.resize(turn.begin + length_of_turn(std::string_view(turn.text).substr(turn.begin), tokenizer));
  return turn;
}

bool continue_each_other(const std::vector<Turn>& turns) {
  for (size_t i = 1; i < turns.size(); ++i) {
    if (turns[i].begin < turns[i - 1].text.size() || !turns[i].text.starts_with(turns[i - 1].text)) return false;
  }
  return true;
}

}  // namespace quern::chat
