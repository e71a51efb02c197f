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
#include "data/added_tokens.h"
#include "data/cut_rule.h"
#include "data/token_table.h"
#include "data/tokenizer_parts.h"

namespace quern::data {

// The special token that ends a document in GPT-2's vocabulary and in those that Quern learns.
inline constexpr std::string_view kEndOfText = "<|endoftext|>";

// What comes before a span of a text.
enum class Before : uint8_t { kNothing, kAddedToken, kText };

// Immutable and thread-safe. Ids are 0 ... vocabulary_size() - 1.
//
// decode(encode(text)) == text for every text that encode() accepts: byte and bpe accept any bytes, valid UTF-8 or not;
// char accepts the characters of its vocabulary and throws an Error for others. Some imported vocabularies cannot keep
// every text; their tokenizers do what Hugging Face's do (docs/tokenizers.md, "What decoding does not restore").
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

  // The same for a text that is encoded span by span, so that no token crosses from one span into the next, as in a
  // prompt and its answer. Some tokenizers put a space in front of a text and after each added token, but none in the
  // middle.
  virtual void encode_span_to(std::string_view text, [[maybe_unused]] Before before, std::vector<int32_t>& ids) const {
    encode_to(text, ids);
  }

  // The same for training and evaluation text, where a spelled-out special token is ordinary text: a page about
  // tokenizers does not end where it mentions <|endoftext|>.
  void encode_document_to(std::string_view text, std::vector<int32_t>& ids) const { encode_part_to(text, true, ids); }

  // The same for a part of a document that was cut by cut_rule(). Some tokenizers put a space in front of a text, which
  // only the part that starts the document may get.
  virtual void encode_part_to(std::string_view text, bool starts_document, std::vector<int32_t>& ids) const = 0;

  // Where documents can be cut without changing their tokens.
  virtual CutRule cut_rule() const noexcept { return CutRule::kBeforeWhiteSpace; }

  // Appends the bytes of `ids` to `text`, without the space that encoding puts in front of a text, if it does. A
  // character can span several ids, so the bytes of a part of the ids of a text
  // need not be valid UTF-8. Error for an id outside the vocabulary; `text` is then unchanged.
  void decode_to(std::span<const int32_t> ids, std::string& text) const;
  std::string decode(std::span<const int32_t> ids) const;

  // The bytes of one id, in the middle of a text; valid for the lifetime of the tokenizer. Error for an id outside the
  // vocabulary.
  std::string_view bytes_of(int32_t id) const;

  int32_t vocabulary_size() const noexcept { return tokens_.size(); }

  // SHA-256 of the meaning of the ids: the bytes of every id, and which ones start and end a document. Identifies the
  // tokenizer of tokens on disk; does not depend on the formatting of tokenizer.json.
  Sha256Digest digest() const noexcept;

  // The token that starts every text, if there is one. encode_to() and encode_document_to() do not add it: callers put
  // it in front of prompts and documents.
  virtual std::optional<int32_t> begin_of_text() const noexcept { return std::nullopt; }

  // The token that follows every document, if there is one.
  virtual std::optional<int32_t> end_of_text() const noexcept { return std::nullopt; }

  // The tokens that are found in a text before anything else; most of them are special.
  virtual std::span<const AddedToken> added_tokens() const noexcept { return {}; }

  // A tokenizer.json for Hugging Face `tokenizers`, which gives the same ids there.
  virtual std::string to_json() const = 0;

  // Writes to_json() to a file. If an Error is thrown, an existing file is unchanged.
  void save(const std::string& path) const;

  // The tokenizer as plain data, for other file formats. For byte and char tokenizers, a byte-level BPE that gives the
  // same ids.
  virtual TokenizerParts parts() const = 0;

  // Loads the output of save() or to_json(), or a Hugging Face file of a kind that docs/tokenizers.md lists. The input
  // is untrusted: any inconsistency is an Error that names its location, starting with `where`, and so is any setting
  // that is not known.
  //
  // `end_of_text` is the content of the token that ends a document, which tokenizer.json does not tell; it must be in
  // the vocabulary. Without it, it is the one that the file is marked with (to_json() does that), otherwise
  // <|endoftext|>, <|end_of_text|> with Llama 3's pre-tokenizer, or </s> with SentencePiece.
  //
  // If there is a tokenizer_config.json next to a tokenizer.json that is not marked, its eos_token ends documents.
  static std::unique_ptr<Tokenizer> load(const std::string& path);
  static std::unique_ptr<Tokenizer> load_from(const std::string& path);  // a file, or a directory with a tokenizer.json
  static std::unique_ptr<Tokenizer> from_json(std::string_view json, std::string_view where,
                                              const std::optional<std::string>& end_of_text = {});

 protected:
  // `strip_space`: decoding removes one leading space.
  explicit Tokenizer(TokenTable tokens, bool strip_space = false)
      : tokens_(std::move(tokens)), strip_space_(strip_space) {}
  const TokenTable& tokens() const noexcept { return tokens_; }

 private:
  TokenTable tokens_;
  bool strip_space_;
};

}  // namespace quern::data
