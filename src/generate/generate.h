// Continues a text.
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
  bool ignore_end = false;  // go on after an end of text, which is then a token like any other
};

// What a text is continued from.
struct Prompt {
  std::vector<int32_t> tokens;
  std::string text;
};

// Error when `text` has something that the tokenizer does not take.
Prompt prompt_of(const data::Tokenizer& tokenizer, std::string text);

// For whoever names none: a line feed, as in nanoGPT; for characters without one a space, else the first character.
Prompt default_prompt(const data::Tokenizer& tokenizer);

// A text's tokens, one at a time, for those who ask for each.
class Generation {
 public:
  // Starts afresh with the prompt, of which the model sees what Decoder says. The decoder must outlive this, and is not
  // used for anything else meanwhile. Throws Error for bad options, an empty prompt and tokens that are not of the
  // vocabulary.
  //
  // This is the one place that knows which ids a text can have: those of `tokenizer`, whose end of text ends it. The
  // model may have more rows in its token table (model.vocabulary); they are never drawn.
  Generation(Decoder& decoder, const data::Tokenizer& tokenizer, std::span<const int32_t> prompt,
             const GenerateOptions& options);

  // Without a tokenizer: every row of the table is a token, and none ends the text.
  Generation(Decoder& decoder, std::span<const int32_t> prompt, const GenerateOptions& options);

  // The next token; none after max_tokens of them, or where the text ends. The same model, prompt and options give the
  // same tokens. Allocates nothing.
  std::optional<int32_t> next();

  size_t made() const { return made_; }

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
};

// Called with each token as soon as it is known; false stops.
using OnToken = std::function<bool(int32_t token)>;

// All tokens of a Generation to `on_token`. Returns how many.
size_t generate(Generation generation, const OnToken& on_token);
size_t generate(Decoder& decoder, std::span<const int32_t> prompt, const GenerateOptions& options,
                const OnToken& on_token);

}  // namespace quern
