#include "generate/generate.h"

#include <limits>

#include "core/error.h"

namespace quern {
namespace {

size_t checked_count(size_t max_tokens) {
  constexpr size_t kMost = std::numeric_limits<uint32_t>::max();
  if (max_tokens <= kMost) return max_tokens;
  throw Error("[generate] max_tokens: expected at most {}, found {}", kMost, max_tokens);
}

}  // namespace

Generation::Generation(Decoder& decoder, std::span<const int32_t> prompt, const GenerateOptions& options)
    : decoder_(decoder),
      max_tokens_(checked_count(options.max_tokens)),
      sampler_(options.sampling, decoder.model().config().vocabulary) {
  decoder_.clear();
  logits_ = decoder_.append(prompt);
}

std::optional<int32_t> Generation::next() {
  if (made_ == max_tokens_) return std::nullopt;
  if (made_ > 0) logits_ = decoder_.append(last_);
  last_ = sampler_.pick(logits_, static_cast<uint32_t>(made_++));
  return last_;
}

size_t generate(Decoder& decoder, std::span<const int32_t> prompt, const GenerateOptions& options,
                const OnToken& on_token) {
  Generation generation(decoder, prompt, options);
  for (auto token = generation.next(); token && on_token(*token);) token = generation.next();
  return generation.made();
}

}  // namespace quern
