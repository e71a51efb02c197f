// Byte-level byte-pair encoding, as in GPT-2.
#pragma once

#include <array>
#include <mutex>

#include "data/added_tokens.h"
#include "data/bpe_merges.h"
#include "data/tokenizer.h"

namespace quern::data {

// The parts of a tokenizer.
struct BpeModel {
  std::vector<std::string> tokens;  // bytes by id; for added tokens, their content
  std::vector<Merge> merges;        // in order of rank
  std::vector<AddedToken> added;
};

// Text is split at added tokens, the text between them into the pieces of pretokenizer.h, and the bytes of each piece
// are merged as described in bpe_merges.h. Words are cached: text whose words were seen before is encoded at about the
// speed of pre-tokenisation.
class BpeTokenizer final : public Tokenizer {
 public:
  // Error that starts with `where` unless: every byte is a token; no token is empty or a duplicate; every merge has ids
  // in the vocabulary, produces the concatenation of its two parts, and is unique; added tokens are UTF-8 and unique.
  BpeTokenizer(BpeModel model, std::string_view where);
  ~BpeTokenizer() override;

  std::string_view name() const noexcept override { return "bpe"; }
  void encode_to(std::string_view text, std::vector<int32_t>& ids) const override { encode_around(text, added_, ids); }
  void encode_document_to(std::string_view text, std::vector<int32_t>& ids) const override {
    encode_around(text, ordinary_, ids);
  }
  std::optional<int32_t> end_of_text() const noexcept override { return end_of_text_; }
  std::string to_json() const override;

  std::span<const Merge> merges() const noexcept { return merges_.list(); }
  std::span<const AddedToken> added_tokens() const noexcept { return added_.list(); }

 private:
  struct Scratch;

  void encode_around(std::string_view text, const AddedTokens& added, std::vector<int32_t>& ids) const;
  void encode_plain(std::string_view text, Scratch& scratch, std::vector<int32_t>& ids) const;
  void encode_piece(std::string_view piece, Scratch& scratch, std::vector<int32_t>& ids) const;
  void merge_piece(std::string_view piece, Scratch& scratch, std::vector<int32_t>& ids) const;
  std::unique_ptr<Scratch> take_scratch() const;
  void give_back(std::unique_ptr<Scratch> scratch) const;

  BpeMerges merges_;
  AddedTokens added_;
  AddedTokens ordinary_;  // added tokens that are not special
  std::array<int32_t, 256> id_of_byte_;
  std::optional<int32_t> end_of_text_;

  // One per concurrently encoding thread, so that each finds a warm cache and none waits.
  mutable std::mutex mutex_;
  mutable std::vector<std::unique_ptr<Scratch>> idle_;
};

}  // namespace quern::data
