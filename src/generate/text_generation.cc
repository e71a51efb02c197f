#include "generate/text_generation.h"

#include "core/error.h"

namespace quern {
namespace {

std::vector<int32_t> prompt_tokens(const data::Tokenizer& tokenizer, const std::optional<std::string>& prompt) {
  return (prompt ? prompt_of(tokenizer, *prompt) : default_prompt(tokenizer)).tokens;
}

struct Release {
  std::atomic_flag& busy;
  ~Release() { busy.clear(std::memory_order_release); }  // pairs with the acquire of the next caller
};

}  // namespace

TextGeneration::TextGeneration(const nn::LanguageModel& model, const data::Tokenizer& tokenizer,
                               const TextRequest& request)
    : tokenizer_(tokenizer),
      decoder_(model, {.threads = request.threads}),
      generation_(decoder_, tokenizer, prompt_tokens(tokenizer, request.prompt), request.options) {}

std::string TextGeneration::next() {
  if (busy_.test_and_set(std::memory_order_acquire)) throw Error("[generate] the stream is in use by another thread");
  const Release release{busy_};
  std::string piece;
  while (piece.empty() && !ended_) {
    const std::optional<int32_t> token = generation_.next();
    ended_ = !token;
    piece = token ? text_.feed(tokenizer_.bytes_of(*token)) : text_.finish();
  }
  return piece;
}

}  // namespace quern
