// Generates text with a model, for one caller at a time.
#pragma once

#include <atomic>
#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "generate/generated_text.h"

namespace quern {

struct TextRequest {
  std::optional<std::string> prompt = {};  // if not set: default_prompt()
  GenerateOptions options = {};
  std::vector<std::string> stop = {};  // the text ends before the first of these
  size_t threads = 1;
  OnBlock on_block = {};  // called while a long prompt is computed
};

// A GeneratedText with its own decoder, which has memory for as many positions as the request needs. Model and
// tokenizer must outlive it. Throws Error like GeneratedText and prompt_of().
class TextGeneration {
 public:
  TextGeneration(const nn::LanguageModel& model, const data::Tokenizer& tokenizer, const TextRequest& request);

  // As in GeneratedText. Throw Error on a concurrent call.
  std::string next();
  std::optional<Finish> finish();

 private:
  TextGeneration(const nn::LanguageModel& model, const data::Tokenizer& tokenizer, const TextRequest& request,
                 std::span<const int32_t> prompt);

  Decoder decoder_;
  GeneratedText text_;
  std::atomic_flag busy_;
};

}  // namespace quern
