// The text of a Generation, in pieces of complete characters.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "generate/generate.h"
#include "generate/stop_filter.h"
#include "generate/utf8_stream.h"

namespace quern {

// Why a text ended.
enum class Finish : uint8_t {
  kLength,  // after max_tokens tokens
  kEnd,     // the model ended it
  kStop,    // at a stop string
};
std::string_view name_of(Finish finish);  // "length", "end" or "stop"

// Generates a continuation of a prompt, without the prompt itself. Decoder and tokenizer must outlive it.
class GeneratedText {
 public:
  // Computes the prompt. Throws Error like Generation and check_stop().
  GeneratedText(Decoder& decoder, const data::Tokenizer& tokenizer, std::span<const int32_t> prompt,
                const GenerateOptions& options, std::span<const std::string> stop = {});

  // The characters that the next tokens complete and that no stop string contains; empty at the end.
  std::string next();

  std::optional<Finish> finish() const;                 // nullopt before the end
  size_t tokens() const { return generation_.made(); }  // so far, those of a stop string included

 private:
  const data::Tokenizer& tokenizer_;
  StopFilter stop_;  // before the prompt is computed: it checks
  Generation generation_;
  Utf8Stream characters_;
  bool ended_ = false;
};

}  // namespace quern
