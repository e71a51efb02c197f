// Prints the answers of a model as they are generated.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "chat/chat_template.h"
#include "cli/prompt_progress.h"
#include "core/json.h"
#include "data/tokenizer.h"
#include "generate/chat_model.h"

namespace quern::cli {

class ChatSpeaker {
 public:
  // `stopped` says whether to end the current answer. Model, tokenizer and template must outlive it.
  ChatSpeaker(const nn::LanguageModel& model, const data::Tokenizer& tokenizer, const chat::ChatTemplate& chat_template,
              ChatOptions options, std::function<bool()> stopped = {});
  ChatSpeaker(const ChatSpeaker&) = delete;
  ChatSpeaker& operator=(const ChatSpeaker&) = delete;

  // Prints the answer to standard output, with a line break at the end, and returns it. If it was stopped before its
  // first character, it is empty and has no `finish`. Throws Error like ChatModel.
  Answer answer(const nlohmann::ordered_json& messages, uint32_t sample = 0);

 private:
  ChatOptions with_progress(ChatOptions options);

  PromptProgress progress_;
  std::function<bool()> stopped_;
  ChatModel model_;
};

}  // namespace quern::cli
