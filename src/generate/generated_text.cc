#include "generate/generated_text.h"

namespace quern {

std::string_view name_of(Finish finish) {
  return finish == Finish::kLength ? "length" : finish == Finish::kEnd ? "end" : "stop";
}

GeneratedText::GeneratedText(Decoder& decoder, const data::Tokenizer& tokenizer, std::span<const int32_t> prompt,
                             const GenerateOptions& options, std::span<const std::string> stop)
    : tokenizer_(tokenizer), stop_(stop), generation_(decoder, tokenizer, prompt, options) {}

std::string GeneratedText::next() {
  std::string piece;
  while (piece.empty() && !ended_) {
    const std::optional<int32_t> token = generation_.next();
    piece = stop_.feed(token ? characters_.feed(tokenizer_.bytes_of(*token)) : characters_.finish());
    if (!token) piece += stop_.finish();
    ended_ = !token || stop_.stopped();
  }
  return piece;
}

std::optional<Finish> GeneratedText::finish() const {
  if (!ended_) return std::nullopt;
  if (stop_.stopped()) return Finish::kStop;
  return generation_.ended() ? Finish::kEnd : Finish::kLength;
}

}  // namespace quern
