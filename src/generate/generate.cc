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

std::vector<int32_t> sorted_ends(std::optional<int32_t> end_of_text, const GenerateOptions& options,
                                 size_t vocabulary) {
  for (const int32_t token : options.end_tokens) {
    if (token >= 0 && static_cast<size_t>(token) < vocabulary) continue;
    throw Error("[generate] end_tokens: expected ids of 0 to {}, found {}", vocabulary - 1, token);
  }
  if (options.ignore_end) return {};
  std::vector<int32_t> ends = options.end_tokens;
  if (end_of_text) ends.push_back(*end_of_text);
  std::sort(ends.begin(), ends.end());
  return ends;
}

}  // namespace

Prompt prompt_of(const data::Tokenizer& tokenizer, std::string text) {
  std::vector<int32_t> tokens = tokenizer.encode(text);
  const std::optional<int32_t> begin = tokenizer.begin_of_text(), end = tokenizer.end_of_text();
  if (begin && (tokens.empty() || tokens.front() != *begin)) tokens.insert(tokens.begin(), *begin);
  if (tokens.empty()) tokens = end ? std::vector{*end} : default_prompt(tokenizer).tokens;
  return {std::move(tokens), std::move(text)};
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
      ends_(sorted_ends(tokens.end, options, decoder.model().config().vocabulary)),
      sampler_(options.sampling, std::min(tokens.count, decoder.model().config().vocabulary)),
      penalty_(options.sampling.repeat_penalty, options.sampling.repeat_window,
               std::min(tokens.count, decoder.model().config().vocabulary)) {
  logits_ = decoder_.restart(prompt);
  penalty_.see(prompt);
}

std::optional<int32_t> Generation::next() {
  if (made_ == max_tokens_) return std::nullopt;
  if (made_ > 0) logits_ = decoder_.append(last_);
  const int32_t token = sampler_.pick(penalty_.apply(logits_), static_cast<uint32_t>(made_));
  if (std::binary_search(ends_.begin(), ends_.end(), token)) {
    max_tokens_ = made_;
    ended_ = true;
    return std::nullopt;
  }
  ++made_;
  last_ = token;
  penalty_.see(token);
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
