// Continues a text.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>

#include "generate/decoder.h"
#include "generate/sampler.h"

namespace quern {

struct GenerateOptions {
  size_t max_tokens = 256;
  Sampling sampling = {};
};

// Called with each token as soon as it is known; false stops, and is the way to end at a token that ends texts.
using OnToken = std::function<bool(int32_t token)>;

// Starts afresh with the prompt, of which the model sees what Decoder says, and gives up to max_tokens tokens to
// `on_token`. Returns how many. The same model, prompt and options give the same tokens. Throws Error for bad options,
// an empty prompt and tokens that are not of the vocabulary. Per token nothing is allocated.
size_t generate(Decoder& decoder, std::span<const int32_t> prompt, const GenerateOptions& options,
                const OnToken& on_token);

}  // namespace quern
