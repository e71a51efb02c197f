#include "generate/chat_model.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "core/error.h"
#include "core/text.h"
#include "generate/answer_text.h"

namespace quern {
namespace {

using Json = nlohmann::ordered_json;

// The part of the window that is kept free for an answer, if it can be that long.
constexpr size_t kAnswerParts = 4;

// Positions that there is memory for at first: several exchanges, and 75 MB for the preset gpt2.
constexpr size_t kFirstCapacity = 1024;

bool has_role(const Json& message, std::string_view role) { return message.value("role", "") == role; }

// The oldest messages after the system's, up to the next question; none if that is the last one.
std::pair<size_t, size_t> oldest_exchange(const Json& messages) {
  size_t begin = 0;
  while (begin < messages.size() && has_role(messages[begin], "system")) ++begin;
  size_t end = begin + 1;
  while (end < messages.size() && !has_role(messages[end], "user")) ++end;
  return end < messages.size() ? std::pair(begin, end) : std::pair(begin, begin);
}

std::vector<std::string> stop_of(const chat::AnswerForm& form) {
  const bool usable = !form.after.empty() && form.after.size() <= kMaxStopBytes && is_utf8(form.after);
  return usable && !form.end_token ? std::vector{form.after} : std::vector<std::string>();
}

// Passes the pieces of an answer on; false if `on_text` ended it.
bool pass_on(GeneratedText& generated, const chat::AnswerForm& form, const OnText& on_text, std::string& text) {
  AnswerText content(form.before);
  const auto pass = [&](const std::string& piece) {
    text += piece;
    return piece.empty() || !on_text || on_text(piece);
  };
  for (std::string piece = generated.next(); !piece.empty(); piece = generated.next()) {
    if (!pass(content.feed(piece))) return false;
  }
  return pass(content.finish());
}

}  // namespace

ChatModel::ChatModel(const nn::LanguageModel& model, const data::Tokenizer& tokenizer,
                     const chat::ChatTemplate& chat_template, const ChatOptions& options)
    : model_(model),
      tokenizer_(tokenizer),
      template_(chat_template),
      options_(options),
      form_(chat::answer_form(chat_template, tokenizer)),
      stop_(stop_of(form_)) {
  check(options_.generate.sampling);
  const auto vocabulary = static_cast<int64_t>(model.config().vocabulary);
  if (form_.end_token && *form_.end_token < vocabulary) options_.generate.end_tokens.push_back(*form_.end_token);
}

// Once there is no room, drops enough for another answer after this one: what comes after a dropped message has to be
// computed again.
ChatModel::Question ChatModel::question_within_limit(Json messages) const {
  const size_t limit = max_positions(model_);
  const size_t room = std::min(options_.generate.max_tokens, limit / kAnswerParts);
  Question question{.tokens = chat::chat_prompt(messages, template_, tokenizer_)};
  if (question.tokens.size() + room <= limit) return question;
  while (question.tokens.size() + 2 * room > limit) {
    const auto [begin, end] = oldest_exchange(messages);
    if (begin == end) break;
    messages.erase(messages.begin() + static_cast<ptrdiff_t>(begin), messages.begin() + static_cast<ptrdiff_t>(end));
    question.hidden += end - begin;
    question.tokens = chat::chat_prompt(messages, template_, tokenizer_);
  }
  if (question.tokens.size() < limit) return question;
  throw Error("[chat] message: expected fewer than {} tokens with the template, the context of the model, found {}",
              limit, question.tokens.size());
}

// Grows by doubling: a longer cache is a new one, and the conversation is computed again.
Decoder& ChatModel::decoder_for(size_t positions) {
  if (decoder_ != nullptr && decoder_->capacity() >= positions) return *decoder_;
  const size_t wanted = decoder_ == nullptr ? kFirstCapacity : 2 * decoder_->capacity();
  const size_t capacity = std::max(positions, std::min(wanted, max_positions(model_)));
  decoder_ = nullptr;  // before the next one takes its memory
  decoder_ = std::make_unique<Decoder>(
      model_, DecoderOptions{.capacity = capacity, .threads = options_.threads, .on_block = options_.on_block});
  return *decoder_;
}

Answer ChatModel::answer(const Json& messages, uint32_t sample, const OnText& on_text) {
  const Question question = question_within_limit(messages);
  GenerateOptions generate = options_.generate;
  generate.sampling.sample = sample;
  generate.max_tokens = std::min(generate.max_tokens, max_positions(model_) - question.tokens.size());
  GeneratedText generated(decoder_for(question.tokens.size() + generate.max_tokens), tokenizer_, question.tokens,
                          generate, stop_);
  Answer answer{.text = {}, .prompt_tokens = question.tokens.size(), .hidden = question.hidden};
  if (pass_on(generated, form_, on_text, answer.text)) {
    answer.finish = generated.finish() == Finish::kLength ? Finish::kLength : Finish::kEnd;
  }
  const bool has_end = form_.end_token && answer.finish == Finish::kEnd && answer.text.ends_with(form_.after);
  if (has_end) answer.text.resize(answer.text.size() - form_.after.size());  // the template writes it
  answer.tokens = generated.tokens();
  return answer;
}

}  // namespace quern
