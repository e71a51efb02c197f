#include "generate/text_generation.h"

#include "core/error.h"

namespace quern {
namespace {

std::vector<int32_t> prompt_tokens(const data::Tokenizer& tokenizer, const std::optional<std::string>& prompt) {
  return (prompt ? prompt_of(tokenizer, *prompt) : default_prompt(tokenizer)).tokens;
}

class OneCaller {
 public:
  explicit OneCaller(std::atomic_flag& busy) : busy_(busy) {
    if (busy.test_and_set(std::memory_order_acquire)) throw Error("[generate] the stream is in use by another thread");
  }
  OneCaller(const OneCaller&) = delete;
  OneCaller& operator=(const OneCaller&) = delete;
  ~OneCaller() { busy_.clear(std::memory_order_release); }  // pairs with the acquire of the next caller

 private:
  std::atomic_flag& busy_;
};

}  // namespace

TextGeneration::TextGeneration(const nn::LanguageModel& model, const data::Tokenizer& tokenizer,
                               const TextRequest& request)
    : TextGeneration(model, tokenizer, request, prompt_tokens(tokenizer, request.prompt)) {}

TextGeneration::TextGeneration(const nn::LanguageModel& model, const data::Tokenizer& tokenizer,
                               const TextRequest& request, std::span<const int32_t> prompt)
    : decoder_(model, {.capacity = positions_for(model, prompt.size(), request.options.max_tokens),
                       .threads = request.threads,
                       .on_block = request.on_block}),
      text_(decoder_, tokenizer, prompt, request.options, request.stop) {}

std::string TextGeneration::next() {
  const OneCaller caller(busy_);
  return text_.next();
}

std::optional<Finish> TextGeneration::finish() {
  const OneCaller caller(busy_);
  return text_.finish();
}

}  // namespace quern
