#include "chat/chat_prompt.h"

#include <string_view>
#include <utility>

#include "chat/span_encoder.h"
#include "chat/turns.h"
#include "core/error.h"

namespace quern::chat {
namespace {

using data::Tokenizer;
using Json = nlohmann::ordered_json;

const Json kNoTools = nullptr;

// The turns of the assistant, if each continues the one before it and `prompt` continues them all; otherwise none. A
// template that trains no turns, such as one that hides thoughts, can still be used.
std::vector<Turn> turns_within(std::string_view prompt, const Json& messages, const ChatTemplate& chat_template,
                               const Tokenizer& tokenizer) try {
  std::vector<Turn> turns;
  for (size_t i = 0; i < messages.size(); ++i) {
    if (messages[i].value("role", "") != "assistant") continue;
    turns.push_back(render_turn({messages, kNoTools}, i, chat_template, tokenizer));
  }
  const bool continued = turns.empty() || (continue_each_other(turns) && prompt.starts_with(turns.back().text));
  return continued ? turns : std::vector<Turn>();
} catch (const Error&) {
  return {};
}

std::string without_space_at_end(std::string_view text) {
  const size_t last = text.find_last_not_of(" \t\r\n");
  return std::string(text.substr(0, last == std::string_view::npos ? 0 : last + 1));
}

}  // namespace

std::vector<int32_t> chat_prompt(const Json& messages, const ChatTemplate& chat_template, const Tokenizer& tokenizer) {
  const std::string prompt = chat_template.render(messages, true);
  const std::vector<Turn> turns = turns_within(prompt, messages, chat_template, tokenizer);
  SpanEncoder encoder(tokenizer);
  encoder.add(turns);
  encoder.add(std::string_view(prompt).substr(turns.empty() ? 0 : turns.back().text.size()), false);
  MarkedTokens marked = encoder.finish();
  if (marked.ids.empty()) throw Error("[template] expected text to answer, found none: the template wrote nothing");
  return std::move(marked.ids);
}

AnswerForm answer_form(const ChatTemplate& chat_template, const Tokenizer& tokenizer) try {
  const std::string content = "Good morning";
  const Json messages = {{{"role", "user"}, {"content", "Hello"}}, {{"role", "assistant"}, {"content", content}}};
  const Turn turn = render_turn({messages, kNoTools}, 1, chat_template, tokenizer);
  const std::string_view said = std::string_view(turn.text).substr(turn.begin);
  const size_t at = said.rfind(content);
  if (at == std::string_view::npos) return {};
  AnswerForm form{.before = std::string(said.substr(0, at)),
                  .after = without_space_at_end(said.substr(at + content.size()))};
  if (const data::AddedToken* end = added_token_at_end(form.after, tokenizer)) {
    form.end_token = end->id;
    form.after.resize(form.after.size() - end->content.size());
  }
  return form;
} catch (const Error&) {
  return {};
}

}  // namespace quern::chat
