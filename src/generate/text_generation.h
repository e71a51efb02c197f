// Generates text in pieces of complete characters.
#pragma once

#include <atomic>
#include <cstddef>
#include <optional>
#include <string>

#include "generate/generate.h"
#include "generate/utf8_stream.h"

namespace quern {

struct TextRequest {
  std::optional<std::string> prompt;  // if not set: default_prompt()
  GenerateOptions options;
  size_t threads = 1;
};

// Generates a continuation of a prompt, without the prompt itself. Model and tokenizer must outlive it. Throws Error
// like Generation and prompt_of().
class TextGeneration {
 public:
  TextGeneration(const nn::LanguageModel& model, const data::Tokenizer& tokenizer, const TextRequest& request);

  // The characters that the next tokens complete; empty at the end. One caller at a time: throws Error on a concurrent
  // call.
  std::string next();

 private:
  const data::Tokenizer& tokenizer_;
  Decoder decoder_;
  Generation generation_;
  Utf8Stream text_;
  bool ended_ = false;
  std::atomic_flag busy_;
};

}  // namespace quern
