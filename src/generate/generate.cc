#include "generate/generate.h"

#include <limits>

#include "core/error.h"

namespace quern {

size_t generate(Decoder& decoder, std::span<const int32_t> prompt, const GenerateOptions& options,
                const OnToken& on_token) {
  if (options.max_tokens > std::numeric_limits<uint32_t>::max()) {
    throw Error("[generate] max_tokens: expected at most {}, found {}", std::numeric_limits<uint32_t>::max(),
                options.max_tokens);
  }
  Sampler sampler(options.sampling, decoder.model().config().vocabulary);
  decoder.clear();
  std::span<const float> logits = decoder.append(prompt);
  size_t made = 0;
  while (made < options.max_tokens) {
    const int32_t token = sampler.pick(logits, static_cast<uint32_t>(made++));
    if (!on_token(token)) break;
    if (made < options.max_tokens) logits = decoder.append(token);
  }
  return made;
}

}  // namespace quern
