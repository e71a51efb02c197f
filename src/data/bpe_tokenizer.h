// Byte-pair encoding: byte-level, as in GPT-2, Llama 3 and Qwen, and SentencePiece's with byte fallback, as in Llama 2.
#pragma once

#include <memory>
#include <mutex>
#include <unordered_map>

#include "data/added_tokens.h"
#include "data/bpe_merges.h"
#include "data/bpe_model.h"
#include "data/bpe_symbols.h"
#include "data/character_cuts.h"
#include "data/tokenizer.h"

namespace quern::data {

// Text is split at added tokens and normalised, the text between them is cut into pieces (pretokenizer.h,
// character_cuts.h), and the bytes or characters of each piece are merged as described in bpe_merges.h. Words are
// cached: text whose words were seen before is encoded at about the speed of pre-tokenisation.
class BpeTokenizer final : public Tokenizer {
 public:
  // Error that starts with `where` unless: every byte is a token (not required of kDigitsGpt2, whose published
  // vocabularies lack some); no token is empty or a duplicate; every merge has ids in the vocabulary, produces the
  // concatenation of its two parts, and is unique; added tokens are UTF-8 and unique. SentencePiece: tokens are UTF-8,
  // and there are all 256 byte tokens, or there is an unknown token.
  //
  // `json` is the tokenizer.json that the model was read from, which to_json() returns unchanged.
  BpeTokenizer(BpeModel model, std::string_view where, std::string json = {});
  ~BpeTokenizer() override;

  std::string_view name() const noexcept override { return "bpe"; }
  void encode_to(std::string_view text, std::vector<int32_t>& ids) const override {
    encode(text, all_, Before::kNothing, ids);
  }
  void encode_span_to(std::string_view text, Before before, std::vector<int32_t>& ids) const override {
    encode(text, all_, before, ids);
  }
  void encode_part_to(std::string_view text, bool starts_document, std::vector<int32_t>& ids) const override {
    encode(text, ordinary_, starts_document ? Before::kNothing : Before::kText, ids);
  }
  using Tokenizer::encode;
  std::optional<int32_t> begin_of_text() const noexcept override { return begin_of_text_; }
  std::optional<int32_t> end_of_text() const noexcept override { return end_of_text_; }
  CutRule cut_rule() const noexcept override;
  std::string to_json() const override;
  TokenizerParts parts() const override;

  const TokenizerRules& rules() const noexcept { return rules_; }
  std::span<const Merge> merges() const noexcept { return merges_.list(); }
  std::span<const AddedToken> added_tokens() const noexcept override { return added_; }

 private:
  struct Scratch;

  // Added tokens by when they are matched.
  struct AddedSet {
    AddedTokens verbatim;
    AddedTokens normalized;
  };

  AddedSet added_set(bool with_special) const;
  void encode(std::string_view text, const AddedSet& added, Before before, std::vector<int32_t>& ids) const;
  void encode_section(std::string_view text, const AddedTokens& added, bool starts, bool is_first, Scratch& scratch,
                      std::vector<int32_t>& ids) const;
  void encode_plain(std::string_view text, bool starts, bool is_first, Scratch& scratch,
                    std::vector<int32_t>& ids) const;
  void encode_piece(std::string_view piece, Scratch& scratch, std::vector<int32_t>& ids) const;
  void merge_piece(std::string_view piece, Scratch& scratch, std::vector<int32_t>& ids) const;
  std::string_view normalize(std::string_view text, bool add_space, std::string& scratch) const;
  std::unique_ptr<Scratch> take_scratch() const;
  void give_back(std::unique_ptr<Scratch> scratch) const;

  std::string json_;
  TokenizerRules rules_;
  TokenTable spelled_;  // as in files; empty for byte-level, where it follows from the bytes
  std::vector<bool> unused_;
  BpeMerges merges_;
  std::vector<AddedToken> added_;
  std::optional<int32_t> unk_;
  std::optional<int32_t> bos_;
  std::optional<int32_t> pad_;
  std::optional<int32_t> begin_of_text_;
  std::optional<int32_t> end_of_text_;
  AddedSet all_;
  AddedSet ordinary_;  // without special tokens
  BpeSymbols symbols_;
  std::unique_ptr<const CharacterCuts> cuts_;                  // SentencePiece only
  std::unordered_map<std::string_view, int32_t> whole_piece_;  // only if merges can be ignored

  // One per concurrently encoding thread, so that each finds a warm cache and none waits.
  mutable std::mutex mutex_;
  mutable std::vector<std::unique_ptr<Scratch>> idle_;
};

}  // namespace quern::data
