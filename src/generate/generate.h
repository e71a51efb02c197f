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
#include "generate/sampler.h"

namespace quern {

struct GenerateOptions {
  size_t max_tokens = 256;
  Sampling sampling = {};
  bool ignore_end = false;  // continue after an end-of-text token, which is then a token like any other
};

// The text to continue.
struct Prompt {
  std::vector<int32_t> tokens;
  std::string text;
};

// Throws Error if the tokenizer cannot encode `text`. An empty text starts a document: its tokens are <|endoftext|>,
// which the model has seen before every other document, or without one those of default_prompt().
Prompt prompt_of(const data::Tokenizer& tokenizer, std::string text);

// The prompt if none is given: a line feed, as in nanoGPT; for a character tokenizer without one, a space, otherwise
// the first character.
Prompt default_prompt(const data::Tokenizer& tokenizer);

// Generates the tokens of a text one at a time.
class Generation {
 public:
  // Starts from the prompt, truncated to the decoder's window. The decoder must outlive this object and must not be
  // used for anything else in the meantime. Throws Error for bad options, an empty prompt, and tokens that are not in
  // the vocabulary.
  //
  // This is the only code that decides which ids a text can contain: those of `tokenizer`, whose end-of-text token ends
  // it. The model may have more rows in its token table (model.vocabulary); they are never drawn.
  Generation(Decoder& decoder, const data::Tokenizer& tokenizer, std::span<const int32_t> prompt,
             const GenerateOptions& options);

  // Without a tokenizer: every row of the table is a token, and no token ends the text.
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
  std::optional<int32_t> end_;
  Sampler sampler_;
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
