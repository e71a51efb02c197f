// Conversion between text and token ids.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/sha256.h"
#include "data/token_table.h"

namespace quern::data {

// The special token that ends a document, spelled as in GPT-2.
inline constexpr std::string_view kEndOfText = "<|endoftext|>";

// Immutable and thread-safe. Ids are 0 ... vocabulary_size() - 1.
//
// decode(encode(text)) == text for every text that encode() accepts: byte and bpe accept any bytes, valid UTF-8 or not;
// char accepts the characters of its vocabulary and throws an Error for others.
class Tokenizer {
 public:
  virtual ~Tokenizer() = default;
  Tokenizer(const Tokenizer&) = delete;
  Tokenizer& operator=(const Tokenizer&) = delete;

  // byte, char or bpe.
  virtual std::string_view name() const noexcept = 0;

  // Appends the ids of `text` to `ids`, which is unchanged if an Error is thrown. Special tokens spelled out in `text`
  // are encoded as such. For prompts, which users may want to start with a special token.
  virtual void encode_to(std::string_view text, std::vector<int32_t>& ids) const = 0;
  std::vector<int32_t> encode(std::string_view text) const;

  // The same for training and evaluation text, where a spelled-out special token is ordinary text: a page about
  // tokenizers does not end where it mentions <|endoftext|>.
  virtual void encode_document_to(std::string_view text, std::vector<int32_t>& ids) const { encode_to(text, ids); }

  // Appends the bytes of `ids` to `text`. A character can span several ids, so the bytes of a part of the ids of a text
  // need not be valid UTF-8. Error for an id outside the vocabulary; `text` is then unchanged.
  void decode_to(std::span<const int32_t> ids, std::string& text) const;
  std::string decode(std::span<const int32_t> ids) const;

  // The bytes of one id, valid for the lifetime of the tokenizer. Error for an id outside the vocabulary.
  std::string_view bytes_of(int32_t id) const;

  int32_t vocabulary_size() const noexcept { return tokens_.size(); }

  // SHA-256 of the meaning of the ids: the bytes of every id, and which one ends a document. Identifies the tokenizer
  // of tokens on disk; does not depend on the formatting of tokenizer.json.
  Sha256Digest digest() const noexcept;

  // The id of kEndOfText, which follows every document, if it is in the vocabulary.
  virtual std::optional<int32_t> end_of_text() const noexcept { return std::nullopt; }

  // A tokenizer.json for Hugging Face `tokenizers`, which gives the same ids there.
  virtual std::string to_json() const = 0;

  // Writes to_json() to a file. If an Error is thrown, an existing file is unchanged.
  void save(const std::string& path) const;

  // Loads the output of save() or to_json(), or a Hugging Face file for byte-level BPE with GPT-2's pre-tokenisation.
  // The input is untrusted: any inconsistency is an Error that names its location, starting with `where`.
  static std::unique_ptr<Tokenizer> load(const std::string& path);
  static std::unique_ptr<Tokenizer> load_from(const std::string& path);  // a file, or a directory with a tokenizer.json
  static std::unique_ptr<Tokenizer> from_json(std::string_view json, std::string_view where);

 protected:
  explicit Tokenizer(TokenTable tokens) : tokens_(std::move(tokens)) {}
  const TokenTable& tokens() const noexcept { return tokens_; }

 private:
  TokenTable tokens_;
};

}  // namespace quern::data
