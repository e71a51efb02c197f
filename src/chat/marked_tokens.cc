#include "chat/marked_tokens.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "chat/span_encoder.h"
#include "chat/turns.h"
#include "core/error.h"

namespace quern::chat {
namespace {

using data::Tokenizer;

Turn turn_of(const Conversation& conversation, size_t message, const ChatTemplate& chat_template,
             const Tokenizer& tokenizer) try {
  return render_turn({conversation.messages, conversation.tools}, message, chat_template, tokenizer);
} catch (const Error& error) {
  throw Error("[data] {}: message {}: {}", conversation.where, message + 1, error.what());
}

std::vector<Turn> render_turns(const Conversation& conversation, const ChatTemplate& chat_template,
                               const Tokenizer& tokenizer) {
  std::vector<Turn> turns;
  for (size_t i = 0; i < conversation.messages.size(); ++i) {
    if (conversation.trained[i]) turns.push_back(turn_of(conversation, i, chat_template, tokenizer));
  }
  return turns;
}

MarkedTokens one_sequence(const std::vector<Turn>& turns, const Tokenizer& tokenizer) {
  SpanEncoder encoder(tokenizer);
  encoder.add(turns);
  return encoder.finish();
}

std::vector<MarkedTokens> mark_messages(const Conversation& conversation, const ChatTemplate& chat_template,
                                        const Tokenizer& tokenizer) {
  std::vector<Turn> turns = render_turns(conversation, chat_template, tokenizer);
  std::vector<MarkedTokens> sequences;
  if (!turns.empty() && continue_each_other(turns)) {
    sequences.push_back(one_sequence(turns, tokenizer));
  } else {
    for (Turn& turn : turns) sequences.push_back(one_sequence({std::move(turn)}, tokenizer));
  }
  return sequences;
}

// The prompt as generate::prompt_of() encodes it: after the begin-of-text token, or after the end of another text if
// there is nothing else to start from.
MarkedTokens mark_completion(const Conversation& conversation, const Tokenizer& tokenizer) {
  SpanEncoder encoder(tokenizer);
  encoder.add(conversation.messages[0]["content"].get_ref<const std::string&>(), false);
  const std::optional<int32_t> begin = tokenizer.begin_of_text();
  if (begin && (encoder.ids().empty() || encoder.ids().front() != *begin)) encoder.prepend(*begin);
  if (encoder.ids().empty()) encoder.add(tokenizer.end_of_text(), false);
  encoder.add(conversation.messages[1]["content"].get_ref<const std::string&>(), true);
  encoder.add(tokenizer.end_of_text(), true);
  return encoder.finish();
}

MarkedTokens mark_text(const std::string& text, const Tokenizer& tokenizer) {
  MarkedTokens marked;
  if (const auto begin = tokenizer.begin_of_text()) marked.ids.push_back(*begin);
  tokenizer.encode_document_to(text, marked.ids);
  if (const auto end = tokenizer.end_of_text()) marked.ids.push_back(*end);
  marked.trained.assign(marked.ids.size(), 1);
  return marked;
}

std::vector<MarkedTokens> mark_any(const Conversation& conversation, const ChatTemplate* chat_template,
                                   const Tokenizer& tokenizer) {
  if (conversation.kind == RecordKind::kText) return {mark_text(conversation.text, tokenizer)};
  if (chat_template != nullptr) return mark_messages(conversation, *chat_template, tokenizer);
  if (conversation.kind == RecordKind::kPromptCompletion) return {mark_completion(conversation, tokenizer)};
  throw Error(
      "[data] {}: expected a model with a chat template for messages, found none; choose --chat-template chatml",
      conversation.where);
}

}  // namespace

uint64_t MarkedTokens::targets() const {
  return trained.empty() ? 0 : static_cast<uint64_t>(std::count(trained.begin() + 1, trained.end(), uint8_t{1}));
}

std::vector<MarkedTokens> mark(const Conversation& conversation, const ChatTemplate* chat_template,
                               const Tokenizer& tokenizer) {
  if (std::ranges::find(conversation.trained, true) == conversation.trained.end()) return {};
  std::vector<MarkedTokens> sequences = mark_any(conversation, chat_template, tokenizer);
  std::erase_if(sequences, [](const MarkedTokens& sequence) { return sequence.targets() == 0; });
  return sequences;
}

}  // namespace quern::chat
