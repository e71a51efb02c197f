#include "generate/generate.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "core/error.h"

namespace quern {
namespace {

size_t checked_count(size_t max_tokens) {
  constexpr size_t kMax = std::numeric_limits<uint32_t>::max();
  if (max_tokens <= kMax) return max_tokens;
  throw Error("[generate] max_tokens: expected at most {}, found {}", kMax, max_tokens);
}

}  // namespace

Prompt prompt_of(const data::Tokenizer& tokenizer, std::string text) {
  if (text.empty()) {
    const std::optional<int32_t> end = tokenizer.end_of_text();
    return {end ? std::vector{*end} : default_prompt(tokenizer).tokens, {}};
  }
  return {tokenizer.encode(text), std::move(text)};
}

Prompt default_prompt(const data::Tokenizer& tokenizer) {
  for (const char* text : {"\n", " "}) {
    try {
      return prompt_of(tokenizer, text);
    } catch (const Error&) {  // not in the vocabulary
    }
  }
  return {{0}, std::string(tokenizer.bytes_of(0))};
}

Generation::Generation(Decoder& decoder, const data::Tokenizer& tokenizer, std::span<const int32_t> prompt,
                       const GenerateOptions& options)
    : Generation(decoder,
                 Tokens{.count = static_cast<size_t>(tokenizer.vocabulary_size()), .end = tokenizer.end_of_text()},
                 prompt, options) {}

Generation::Generation(Decoder& decoder, std::span<const int32_t> prompt, const GenerateOptions& options)
    : Generation(decoder, Tokens{.count = decoder.model().config().vocabulary, .end = {}}, prompt, options) {}

Generation::Generation(Decoder& decoder, const Tokens& tokens, std::span<const int32_t> prompt,
                       const GenerateOptions& options)
    : decoder_(decoder),
      max_tokens_(checked_count(options.max_tokens)),
      end_(options.ignore_end ? std::nullopt : tokens.end),
      sampler_(options.sampling, std::min(tokens.count, decoder.model().config().vocabulary)) {
  decoder_.clear();
  logits_ = decoder_.append(prompt);
}

std::optional<int32_t> Generation::next() {
  if (made_ == max_tokens_) return std::nullopt;
  if (made_ > 0) logits_ = decoder_.append(last_);
  const int32_t token = sampler_.pick(logits_, static_cast<uint32_t>(made_));
  if (token == end_) {
    max_tokens_ = made_;
    ended_ = true;
    return std::nullopt;
  }
  ++made_;
  last_ = token;
  return token;
}

size_t generate(Generation generation, const OnToken& on_token) {
  for (auto token = generation.next(); token && on_token(*token);) token = generation.next();
  return generation.made();
}

size_t generate(Decoder& decoder, std::span<const int32_t> prompt, const GenerateOptions& options,
                const OnToken& on_token) {
  return generate(Generation(decoder, prompt, options), on_token);
}

}  // namespace quern
