#include "cli/chat_speaker.h"

#include <utility>

#include "cli/shown_text.h"
#include "core/error.h"
#include "core/text.h"

namespace quern::cli {
namespace {

// Leaves the computation of a prompt.
struct Stopped {};

// Text from a terminal or a pipe can be anything; a template and a file of conversations expect characters.
void check_messages(const nlohmann::ordered_json& messages) {
  for (const auto& message : messages) {
    if (is_utf8(message["content"].get_ref<const std::string&>())) continue;
    throw Error("[chat] message: expected UTF-8, found other bytes");
  }
}

}  // namespace

ChatSpeaker::ChatSpeaker(const nn::LanguageModel& model, const data::Tokenizer& tokenizer,
                         const chat::ChatTemplate& chat_template, ChatOptions options, std::function<bool()> stopped)
    : stopped_(std::move(stopped)), model_(model, tokenizer, chat_template, with_progress(std::move(options))) {}

ChatOptions ChatSpeaker::with_progress(ChatOptions options) {
  options.on_block = [this](size_t done, size_t total) {
    progress_.update(done, total);
    if (stopped_ && stopped_()) throw Stopped();
  };
  return options;
}

Answer ChatSpeaker::answer(const nlohmann::ordered_json& messages, uint32_t sample) try {
  check_messages(messages);
  progress_.start();
  Answer answer = model_.answer(messages, sample, [this](const std::string& piece) {
    progress_.stop();
    show_text(piece);
    return !stopped_ || !stopped_();
  });
  progress_.stop();
  show_text("\n");
  return answer;
} catch (const Stopped&) {
  progress_.stop();
  show_text("\n");
  return {};
} catch (const Error&) {
  progress_.stop();
  throw;
}

}  // namespace quern::cli
