// A tokenizer as plain data, for file formats: every kind of tokenizer can be taken apart (Tokenizer::parts()), and put
// together again by make_tokenizer().
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace quern::data {

class Tokenizer;

// The values are those of `tokenizer.ggml.token_type` in GGUF files.
enum class TokenType : int32_t {
  kNormal = 1,       // a result of merges, or a character or byte that they start from
  kUnknown = 2,      // stands for text that has no token
  kControl = 3,      // a special token: matched in prompts, not in documents
  kUserDefined = 4,  // an added token that is not special: matched in every text
  kUnused = 5,       // a gap or padding: never produced, decodes to nothing
  kByte = 6,         // a byte that is spelled <0x0A>; SentencePiece only
};

enum class TokenizerModel : uint8_t {
  kByteLevelBpe,      // merges bytes: GPT-2, SmolLM2, Llama 3, Qwen
  kSentencePieceBpe,  // merges characters; those without a token become bytes: Llama 2, TinyLlama
};

// Where text is cut before merging; no token spans a cut.
enum class PretokenizerKind : uint8_t {
  kNone,        // nowhere
  kGpt2,        // GPT-2's regular expression
  kDigitsGpt2,  // at each numeric character, then by GPT-2's regular expression: SmolLM, StarCoder
  kLlama3,      // Llama 3's regular expression
  kQwen2,       // Qwen's: as Llama 3's, with single digits
};

enum class NormalizerKind : uint8_t {
  kNone,
  kNfc,  // Unicode's canonical composition
};

// Whether SentencePiece puts a space in front of a text, and in front of the text after each added token.
enum class SpacePrefix : uint8_t {
  kNever,
  kAlways,           // in front of each
  kMetaspaceAlways,  // in front of each that does not start with one
  kMetaspaceFirst,   // in front of the text only, if it does not start with one
};

// Spelled as the tokens are.
struct MergeText {
  std::string left;
  std::string right;

  friend bool operator==(const MergeText&, const MergeText&) = default;
};

// What is done to a text besides merging.
struct TokenizerRules {
  TokenizerModel model = TokenizerModel::kByteLevelBpe;
  PretokenizerKind pretokenizer = PretokenizerKind::kGpt2;
  NormalizerKind normalizer = NormalizerKind::kNone;
  SpacePrefix space_prefix = SpacePrefix::kNever;
  bool strip_space = false;    // decoding a text removes one leading space
  bool ignore_merges = false;  // a piece that is a token is that token, whatever the merges
  bool byte_fallback = false;  // characters without a token become <0xNN>; SentencePiece only
  bool fuse_unknown = false;   // consecutive unknown characters are one `unk`

  friend bool operator==(const TokenizerRules&, const TokenizerRules&) = default;
};

struct TokenizerParts : TokenizerRules {
  // By id, as files spell them. Byte-level: normal tokens in GPT-2's alphabet (byte_alphabet.h), others verbatim.
  // SentencePiece: spaces as U+2581, bytes as <0x0A>.
  std::vector<std::string> tokens;
  std::vector<TokenType> types;   // as many
  std::vector<MergeText> merges;  // in order of rank

  std::optional<int32_t> bos;  // starts a text if add_bos is set
  std::optional<int32_t> eos;  // Tokenizer::end_of_text()
  std::optional<int32_t> unk;
  std::optional<int32_t> pad;
  bool add_bos = false;
};

// Error that starts with `where` if the parts are not consistent or not supported; the input is untrusted. Unused
// tokens at the end are not part of the vocabulary. A byte-level vocabulary of the 256 bytes without merges gives a
// byte tokenizer, and one of single characters without all of the bytes gives a char tokenizer, so that parts() and
// make_tokenizer() are inverse for every kind.
std::unique_ptr<Tokenizer> make_tokenizer(TokenizerParts parts, std::string_view where);

// ---- GGUF ----

struct GgufTokenizerNames {
  std::string_view model;  // `tokenizer.ggml.model`: gpt2 or llama
  std::string_view pre;    // `tokenizer.ggml.pre`: gpt-2, smollm, llama-bpe, qwen2 or default
};
GgufTokenizerNames gguf_names(const TokenizerParts& parts);

// Parts without a vocabulary, with what these names imply and the defaults of keys that a file may leave out (add_bos,
// space_prefix). Error that starts with `where` and names the value if one is not known.
TokenizerParts parts_for_gguf(std::string_view model, std::string_view pre, std::string_view where);

// GGUF's model llama has a score for each token instead of merges. The merges are all divisions of normal tokens into
// two normal tokens, those of the highest score first. Error unless there are as many scores and types as tokens, or if
// a score is not a number or a token is longer than 1024 bytes.
std::vector<MergeText> merges_from_scores(std::span<const std::string> tokens, std::span<const TokenType> types,
                                          std::span<const float> scores, std::string_view where);

// Scores by id that give the same order: -1, -2, ... for the results of merges in order of
// their first one, 0 for other tokens (characters, bytes, control tokens).
std::vector<float> scores_from_merges(const TokenizerParts& parts);

}  // namespace quern::data
