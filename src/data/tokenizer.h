// Text to token ids and back.
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

// The special token that ends a document, spelled as GPT-2 spells it.
inline constexpr std::string_view kEndOfText = "<|endoftext|>";

// Immutable once made; every function may be called from any thread. Ids are 0 ... vocabulary_size() - 1.
//
// decode(encode(text)) == text for every text that encode() takes: byte and bpe take any bytes, valid UTF-8 or not;
// char takes the characters of its vocabulary and throws an Error for others.
class Tokenizer {
 public:
  virtual ~Tokenizer() = default;
  Tokenizer(const Tokenizer&) = delete;
  Tokenizer& operator=(const Tokenizer&) = delete;

  // byte, char or bpe.
  virtual std::string_view name() const noexcept = 0;

  // Appends the ids of `text` to `ids`, which is as before if an Error is thrown. Where `text` spells a special token,
  // it is that token: for prompts, which someone types and may want to start with one.
  virtual void encode_to(std::string_view text, std::vector<int32_t>& ids) const = 0;
  std::vector<int32_t> encode(std::string_view text) const;

  // The same for text to learn from or to evaluate on: what spells a special token is ordinary text there, because a
  // page about tokenizers does not end where it mentions <|endoftext|>.
  virtual void encode_document_to(std::string_view text, std::vector<int32_t>& ids) const { encode_to(text, ids); }

  // Appends the bytes of `ids` to `text`. A character can be spread over several ids, so the bytes of some of the ids
  // of a text need not be valid UTF-8. An id outside of the vocabulary is an Error, and `text` is as before.
  void decode_to(std::span<const int32_t> ids, std::string& text) const;
  std::string decode(std::span<const int32_t> ids) const;

  // The bytes of one id, for as long as the tokenizer lives. An id outside of the vocabulary is an Error.
  std::string_view bytes_of(int32_t id) const;

  int32_t vocabulary_size() const noexcept { return tokens_.size(); }

  // SHA-256 of what the ids stand for: the bytes of every id and which one ends a document. Tells whether tokens on
  // disk are this tokenizer's; does not depend on how tokenizer.json is written.
  Sha256Digest digest() const noexcept;

  // The id of kEndOfText, which follows every document, if the vocabulary has one.
  virtual std::optional<int32_t> end_of_text() const noexcept { return std::nullopt; }

  // A tokenizer.json that Hugging Face `tokenizers` reads and that gives the same ids there.
  virtual std::string to_json() const = 0;

  // to_json() into a file: complete, or as it was before when an Error is thrown.
  void save(const std::string& path) const;

  // A file by save() or to_json(), or by Hugging Face for byte-level BPE with GPT-2's pre-tokenisation. Not trusted:
  // whatever does not fit together is an Error that names the place, which starts with `where`.
  static std::unique_ptr<Tokenizer> load(const std::string& path);
  static std::unique_ptr<Tokenizer> load_from(const std::string& path);  // a file, or the tokenizer.json of a folder
  static std::unique_ptr<Tokenizer> from_json(std::string_view json, std::string_view where);

 protected:
  explicit Tokenizer(TokenTable tokens) : tokens_(std::move(tokens)) {}
  const TokenTable& tokens() const noexcept { return tokens_; }

 private:
  TokenTable tokens_;
};

}  // namespace quern::data
