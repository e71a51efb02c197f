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

#include <quern/error.h>
#include <quern/model.h>

namespace quern {

struct GenerationOptions {
  size_t tokens = 256;       // max number of tokens
  float temperature = 1.0f;  // below 1: more likely text; above 1: more surprising; 0: always the most likely token
  int64_t top_k = 0;         // sample from the k most likely tokens only; 0: from all
  float top_p = 1.0f;        // in (0, 1]: sample from the most likely tokens whose probabilities add up to this
  uint64_t seed = 0;
  uint32_t sample = 0;      // 1, 2, ...: other texts for the same seed, as `quern generate --samples` prints them
  bool ignore_end = false;  // continue after an end of text, which is then treated like any other token
  size_t threads = 0;       // 0: every core; the text does not depend on it
};

// Returns the text that continues `prompt`, without the prompt. The same model, prompt and options give the same text.
// Without a prompt, generation starts from a line feed; with an empty one, at the beginning of a document: after
// <|endoftext|> if the tokenizer has it, otherwise also from a line feed. When the text outgrows the model's context,
// the window slides. The result is valid UTF-8: bytes that cannot be part of a character become U+FFFD. Error for bad
// options, a prompt that the tokenizer cannot encode, and a model without a tokenizer.
std::string generate(const Model& model, const std::optional<std::string>& prompt = {},
                     const GenerationOptions& options = {});

// The same text in pieces, each as soon as its characters are complete. Keeps the model alive. One thread at a time:
// a second caller of next() gets an Error.
class TextStream {
 public:
  explicit TextStream(const Model& model, const std::optional<std::string>& prompt = {},
                      const GenerationOptions& options = {});
  TextStream(TextStream&&) noexcept;
  TextStream& operator=(TextStream&&) noexcept;
  ~TextStream();

  // At least one character; nullopt at the end of the text.
  std::optional<std::string> next();

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace quern
