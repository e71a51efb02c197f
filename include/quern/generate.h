// Text generation with a trained model.
//
//   const quern::Model model = quern::Model::load("runs/first");
//   std::string story = "Once" + quern::generate(model, "Once", {.tokens = 200, .temperature = 0.8f, .seed = 7});
//
//   quern::TextStream stream(model, "Once");  // the same, piece by piece as it is generated
//   while (const std::optional<std::string> piece = stream.next()) std::fputs(piece->c_str(), stdout);
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <quern/error.h>
#include <quern/model.h>

namespace quern {

// The repeat penalty applies first, then temperature, top_k, top_p and min_p.
struct GenerationOptions {
  size_t tokens = 256;       // max number of tokens
  float temperature = 1.0f;  // below 1: more likely text; above 1: more surprising; 0: always the most likely token
  int64_t top_k = 0;         // sample from the k most likely tokens only; 0: from all
  float top_p = 1.0f;        // in (0, 1]: sample from the most likely tokens whose probabilities add up to this
  float min_p = 0.0f;        // in [0, 1]: only from tokens at least this many times as likely as the most likely one
  uint64_t seed = 0;
  uint32_t sample = 0;      // 1, 2, ...: other texts for the same seed, as `quern generate --samples` prints them
  bool ignore_end = false;  // continue after an end of text, which is then treated like any other token
  size_t threads = 0;       // 0: every core; the text does not depend on it

  // Above 1: tokens among the last `repeat_window` ones, prompt included, become less likely: their logits are divided
  // by the penalty if positive, and multiplied by it if negative. A window of 0 is the whole text.
  float repeat_penalty = 1.0f;
  size_t repeat_window = 64;

  std::vector<std::string> stop = {};  // the text ends before the first occurrence of any of these
};

// Returns the text that continues `prompt`, without the prompt. The same model, prompt and options give the same text.
// Without a prompt, generation starts from a line feed; with an empty one, at the beginning of a document: after
// <|endoftext|> if the tokenizer has it, otherwise also from a line feed. The text ends after `tokens` tokens, where
// the model ends it, or before a stop string. The model ends it with the tokenizer's end of text, or with a token that
// generation_config.json in the run's directory lists as eos_token_id. When the text outgrows the model's context, the
// window slides. The result is valid UTF-8: bytes that cannot be part of a character become U+FFFD. Error for bad
// options, a prompt that the tokenizer cannot encode, and a model without a tokenizer.
std::string generate(const Model& model, const std::optional<std::string>& prompt = {},
                     const GenerationOptions& options = {});

// The same text in pieces, each as soon as its characters are complete. Keeps the model alive. One thread at a time:
// a second caller gets an Error.
class TextStream {
 public:
  explicit TextStream(const Model& model, const std::optional<std::string>& prompt = {},
                      const GenerationOptions& options = {});
  TextStream(TextStream&&) noexcept;
  TextStream& operator=(TextStream&&) noexcept;
  ~TextStream();

  // At least one character; nullopt at the end of the text.
  std::optional<std::string> next();

  // Why the text ended: "length" (after `tokens` tokens), "end" (the model ended it) or "stop" (a stop string); nullopt
  // before the end.
  std::optional<std::string_view> finish() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace quern
