// Generates a continuation of a text.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "data/tokenizer.h"
#include "generate/decoder.h"
#include "generate/repeat_penalty.h"
#include "generate/sampler.h"

namespace quern {

struct GenerateOptions {
  size_t max_tokens = 256;
  Sampling sampling = {};
  // Tokens that end the text, besides the tokenizer's end of text: chat models also end at the end of a turn.
  std::vector<int32_t> end_tokens = {};
  bool ignore_end = false;  // continue after all of these, which are then tokens like any other
};

// The text to continue.
struct Prompt {
  std::vector<int32_t> tokens;
  std::string text;
};

// Throws Error if the tokenizer cannot encode `text`. The tokens start with the tokenizer's begin of text if it has
// one, once even if `text` spells it out. An empty text starts a document: without a begin of text, its tokens are
// <|endoftext|>, which the model has seen before every other document, or without that those of default_prompt().
Prompt prompt_of(const data::Tokenizer& tokenizer, std::string text);

// The prompt if none is given: a line feed, as in nanoGPT; for a character tokenizer without one, a space, otherwise
// the first character.
Prompt default_prompt(const data::Tokenizer& tokenizer);

// Generates the tokens of a text one at a time.
class Generation {
 public:
  // Starts from the prompt, truncated to the model's window. The decoder must outlive this object and must not be used
  // for anything else in the meantime. Throws Error for bad options, an empty prompt, and tokens, also end tokens, that
  // are not in the vocabulary. The decoder's capacity must be that of positions_for(); otherwise next() throws Error
  // when it is full.
  //
  // This is the only code that decides which ids a text can contain: those of `tokenizer`, whose end-of-text token ends
  // it, as do the end tokens of the options. The model may have more rows in its token table (model.vocabulary); they
  // are never drawn.
  Generation(Decoder& decoder, const data::Tokenizer& tokenizer, std::span<const int32_t> prompt,
             const GenerateOptions& options);

  // Without a tokenizer: every row of the table is a token, and only the end tokens of the options end the text.
  Generation(Decoder& decoder, std::span<const int32_t> prompt, const GenerateOptions& options);

  // The next token; nullopt after max_tokens tokens or at the end of the text. The same model, prompt and options give
  // the same tokens. Does not allocate.
  std::optional<int32_t> next();

  size_t made() const { return made_; }
  bool ended() const { return ended_; }  // whether the model ended the text before max_tokens

 private:
  struct Tokens {
    size_t count;
    std::optional<int32_t> end;
  };
  Generation(Decoder& decoder, const Tokens& tokens, std::span<const int32_t> prompt, const GenerateOptions& options);

  Decoder& decoder_;
  size_t max_tokens_;
  std::vector<int32_t> ends_;  // sorted
  Sampler sampler_;
  RepeatPenalty penalty_;  // after the sampler, which checks the options
  std::span<const float> logits_;
  int32_t last_ = 0;
  size_t made_ = 0;
  bool ended_ = false;
};

// Called with each token as soon as it is available; return false to stop.
using OnToken = std::function<bool(int32_t token)>;

// Passes all tokens of a Generation to `on_token`. Returns their number.
size_t generate(Generation generation, const OnToken& on_token);
size_t generate(Decoder& decoder, std::span<const int32_t> prompt, const GenerateOptions& options,
                const OnToken& on_token);

}  // namespace quern
