// Continues a text.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>

#include "generate/decoder.h"
#include "generate/sampler.h"

namespace quern {

struct GenerateOptions {
  size_t max_tokens = 256;
  Sampling sampling = {};
};

// A text's tokens, one at a time, for those who ask for each.
class Generation {
 public:
  // Starts afresh with the prompt, of which the model sees what Decoder says. The decoder must outlive this, and is not
  // used for anything else meanwhile. Throws Error for bad options, an empty prompt and tokens that are not of the
  // vocabulary.
  Generation(Decoder& decoder, std::span<const int32_t> prompt, const GenerateOptions& options);

  // The next token; none after max_tokens of them. The same model, prompt and options give the same tokens. Allocates
  // nothing.
  std::optional<int32_t> next();

  size_t made() const { return made_; }

 private:
  Decoder& decoder_;
  size_t max_tokens_;
  Sampler sampler_;
  std::span<const float> logits_;
  int32_t last_ = 0;
  size_t made_ = 0;
};

// Called with each token as soon as it is known; false stops, and is the way to end at a token that ends texts.
using OnToken = std::function<bool(int32_t token)>;

// All tokens of a Generation to `on_token`. Returns how many.
size_t generate(Decoder& decoder, std::span<const int32_t> prompt, const GenerateOptions& options,
                const OnToken& on_token);

}  // namespace quern
