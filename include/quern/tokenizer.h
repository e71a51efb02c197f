// Tokenizers: text to token ids and back.
//
//   const quern::Tokenizer tokenizer = quern::Tokenizer::train({"book.txt"}, {.kind = "bpe", .vocabulary = 4096});
//   const std::vector<int32_t> ids = tokenizer.encode("Once upon a time");
//   assert(tokenizer.decode(ids) == "Once upon a time");
//   tokenizer.save("tokenizer.json");  // Hugging Face `tokenizers` reads it too
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <quern/error.h>

namespace quern {

struct TokenizerOptions {
  std::string kind = "bpe";    // "byte", "char" or "bpe" (byte-level BPE with GPT-2's pre-tokenization)
  uint64_t vocabulary = 8192;  // tokens, for "bpe": the 256 bytes, the merges and <|endoftext|>
};

// Immutable. A copy refers to the same tokenizer; any number of threads may use it concurrently. Ids are 0 to
// vocabulary_size() - 1.
class Tokenizer {
 public:
  // Learns from text files, folders of them, or JSON Lines. The same text gives the same tokenizer. Error when there is
  // no text or the vocabulary is too small.
  static Tokenizer train(const std::vector<std::filesystem::path>& paths, const TokenizerOptions& options = {});

  // Loads a tokenizer.json, or one in a folder such as that of a run. The file is not trusted: Error when anything in
  // it is inconsistent.
  static Tokenizer load(const std::filesystem::path& path);

  // A special token such as <|endoftext|> that is spelled out in `text` becomes that token. "byte" and "bpe" encode any
  // bytes; "char" throws Error for a character that was not in its training text.
  std::vector<int32_t> encode(std::string_view text) const;

  // decode(encode(text)) == text. A character can span several ids, so decoding a part of the ids may yield invalid
  // UTF-8. Error for an id outside the vocabulary.
  std::string decode(std::span<const int32_t> ids) const;

  // Replaces the file atomically: after an Error the old file is unchanged.
  void save(const std::filesystem::path& path) const;

  std::string kind() const;                    // "byte", "char" or "bpe"
  int32_t vocabulary_size() const;             // number of ids
  std::optional<int32_t> end_of_text() const;  // the id that ends a document; only "bpe" has one

  class Impl;  // internal
  explicit Tokenizer(std::shared_ptr<const Impl> impl);

 private:
  std::shared_ptr<const Impl> impl_;
};

}  // namespace quern
