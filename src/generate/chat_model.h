// Answers conversations with a model.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "chat/chat_prompt.h"
#include "chat/chat_template.h"
#include "core/json.h"
#include "data/tokenizer.h"
#include "generate/decoder.h"
#include "generate/generated_text.h"

namespace quern {

struct ChatOptions {
  GenerateOptions generate = {};  // max_tokens is that of one answer
  size_t threads = 1;
  OnBlock on_block = {};  // called while a long prompt is computed; may throw, which ends the answer
};

struct Answer {
  std::string text;
  std::optional<Finish> finish = {};  // kEnd or kLength; nullopt if on_text ended it
  size_t tokens = 0;                  // of the answer
  size_t prompt_tokens = 0;           // of what it was given
  size_t hidden = 0;                  // messages that were dropped because there was no room for them
};

// Called with each piece of an answer as soon as its characters are complete; return false to end the answer.
using OnText = std::function<bool(const std::string& piece)>;

// Model, tokenizer and template must outlive it. One caller at a time.
class ChatModel {
 public:
  // Error for bad sampling options.
  ChatModel(const nn::LanguageModel& model, const data::Tokenizer& tokenizer, const chat::ChatTemplate& chat_template,
            const ChatOptions& options = {});

  // Answers messages: an array of objects with "role" and "content", both texts. The same messages, options and
  // `sample`, the number of the answer for one seed, give the same answer: keys and values of an earlier conversation
  // are reused as far as the tokens are the same, which changes no result.
  //
  // An answer ends with the token or the text that ends a turn in the template, with the tokenizer's end of text or
  // with an end token of the options. The model sees at most max_positions(): if no room for an answer is left, the
  // oldest messages are dropped, from one of the user to the next, but never system messages at the front nor the last
  // question. Error if that does not fit either, or if the template refuses the messages.
  Answer answer(const nlohmann::ordered_json& messages, uint32_t sample = 0, const OnText& on_text = {});

 private:
  struct Question {
    std::vector<int32_t> tokens;
    size_t hidden = 0;  // messages
  };
  Question question_within_limit(nlohmann::ordered_json messages) const;
  Decoder& decoder_for(size_t positions);

  const nn::LanguageModel& model_;
  const data::Tokenizer& tokenizer_;
  const chat::ChatTemplate& template_;
  ChatOptions options_;
  chat::AnswerForm form_;
  std::vector<std::string> stop_;     // the text that ends a turn, unless it is a token
  std::unique_ptr<Decoder> decoder_;  // null before the first answer
};

}  // namespace quern
